-- Deep recursion, errors, coroutines and finalisers; each part says how often it happened.
local rounds = tonumber(arg[1])
local made = { errors = 0, yields = 0, resumes = 0 }

local function down(n) if n == 0 then return 0 end return 1 + down(n - 1) end

local function nested(n)  -- through C at every level
  if n == 0 then made.errors = made.errors + 1 error({ level = 0 }) end
  local fine, what = pcall(nested, n - 1)
  if not fine and what.level < 3 then
    made.errors = made.errors + 1
    error({ level = what.level + 1 })
  end
  return fine
end

local function walk(node) if node then walk(node.left) coroutine.yield(node.key) made.yields = made.yields + 1 walk(node.right) end end
local function tree(low, high)
  if low > high then return nil end
  local middle = (low + high) // 2
  return { left = tree(low, middle - 1), key = middle, right = tree(middle + 1, high) }
end

local function through_pcall()
  local ok = pcall(function() coroutine.yield(1) made.yields = made.yields + 1 made.errors = made.errors + 1 error("inside") end)
  coroutine.yield(2)
  made.yields = made.yields + 1
  return ok
end

local function inside(depth)  -- coroutines within coroutines
  if depth == 0 then coroutine.yield("bottom") made.yields = made.yields + 1 return end
  for _ in coroutine.wrap(function() inside(depth - 1) end) do coroutine.yield("up") made.yields = made.yields + 1 end
end

local compared = 0
local meta = setmetatable({}, { __index = function(_, k) if k > 0 then return rawget({}, k) or k end error("no") end,
                                __gc = function() down(5) end })
for round = 1, rounds do
  down(150)
  pcall(nested, 60 + round % 40)
  local sum = 0
  for key in coroutine.wrap(function() walk(tree(1, 63)) end) do sum = sum + key end
  assert(sum == 63 * 32)
  local co = coroutine.create(through_pcall)
  while coroutine.status(co) ~= "dead" do made.resumes = made.resumes + 1 assert(coroutine.resume(co)) end
  for _ in coroutine.wrap(function() inside(20) end) do end
  local list = {}
  for at = 1, 50 do list[at] = (at * 7919 + round) % 101 end
  table.sort(list, function(a, b) compared = compared + 1 return a < b end)
  pcall(table.sort, list, function(a, b) made.errors = made.errors + 1 error("stop") end)
  local _ = ("abc"):rep(20):gsub("b", function(c) return down(3) .. c end)
  assert(meta[round] == round and not pcall(function() made.errors = made.errors + 1 return meta[-1] end))
  setmetatable({}, { __gc = function() down(4) end })
end
collectgarbage()
print(made.errors, made.yields, made.resumes, compared)
