-- A report beside the transactions: sorts and groups a part of the accounts.
\set branch random(1, 5)
SELECT aid % 1000 AS class, count(*), avg(abalance), max(filler) FROM pgbench_accounts
 WHERE aid BETWEEN (:branch - 1) * 100000 + 1 AND (:branch - 1) * 100000 + 20000 GROUP BY class ORDER BY max(filler), avg(abalance);
