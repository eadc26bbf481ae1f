"""The fleet's table and page show every name as plain text."""

from __future__ import annotations

from perflaw.report.fleet import fleet_page, fleet_text

NAME = "<script>alert('x')</script>\x1b[31m"


def fleet():
    stub = {
        "id": "1", "host": NAME, "program": NAME, "pid": 0, "heard_s": 300.0, "spooled": 3, "refused": [NAME], "version": 1,
        "spent": 0.014, "own": None,
        "measures": [{"kind": "samples", "functions": [], "why": NAME}, {"kind": "paths", "functions": [NAME], "why": NAME}],
    }  # fmt: skip
    function = {
        "component": NAME, "metric": "time", "calls": 3000, "hosts": 1, "borders": [2000.0], "groups": 2, "stable": True,
        "utility": 0.5,
    }  # fmt: skip
    spent = [{"host": NAME, "age_s": 5.0, "share": 0.01, "own": 0.125}]
    decision = {"age_s": 5.0, "host": NAME, "pid": 4711, "what": NAME, "why": NAME, "utility": 1.0}
    service = {
        "service": NAME, "allow": [NAME], "not_allowed": [], "budget": 0.02, "stubs": [stub], "functions": [function],
        "spent": spent, "decisions": [decision],
    }  # fmt: skip
    return {"schema": "perflaw.fleet/1", "services": [service]}


def test_the_page_shows_names_as_text_and_the_cost_beside_the_budget():
    page = fleet_page(fleet())
    assert page.count("<script>") == 1
    assert "&lt;script&gt;" in page
    assert "budget 2 %" in page
    assert page.count("<circle") == 2
    assert page.count("class=beyond") == 0
    assert ": 1.0 %, 5 s ago" in page
    assert ": 12.5 %, 5 s ago" in page  # of the stub itself
    assert "2.0 µs" in page
    assert "<td>4711</td>" in page
    assert "none yet" in fleet_page({"services": [{**fleet()["services"][0], "spent": [], "decisions": []}]})
    assert "No service is enrolled" in fleet_page({"services": []})


def test_the_table_names_hosts_and_functions_without_control_characters():
    text = fleet_text(fleet())
    assert "\x1b" not in text
    assert "5 min ago" in text
    assert "1.4 %" in text
    assert "3,000" in text
    assert fleet_text({"services": []}) == "no service is enrolled\n"


def test_a_window_far_beyond_the_budget_leaves_height_for_the_others():
    one = fleet()
    one["services"][0]["spent"] = [
        {"host": "a", "age_s": 5.0, "share": share, "own": 0.1} for share in (0.92, 0.02, 0.01)
    ]
    page = fleet_page(one)
    assert page.count("class=beyond") == 1
    heights = [float(part.split('cy="')[1].split('"')[0]) for part in page.split("<circle")[1:4]]
    assert heights[0] == 0
    assert heights[2] - heights[1] > 10
    assert "at most 92.0 %" in page


def test_functions_that_the_allow_list_lacks_are_told_where_nothing_is_measured():
    (service,) = fleet()["services"]
    missing = {**service, "not_allowed": [{"component": NAME, "share": 0.29}]}
    silent = {"services": [{**missing, "functions": []}]}
    assert "the allow-list does not have" in " ".join(fleet_text(silent).split())
    assert "(29 %)" in fleet_text(silent)
    assert "\x1b" not in fleet_text(silent)
    assert "(29 %)</p>" in fleet_page(silent)
    assert fleet_page(silent).count("<script>") == 1
    assert "does not have" not in fleet_text({"services": [missing]})
