"""Lua scripts for the slots of replicas and for shared state. Redis runs each atomically."""

from emceepee.store.redis.scripts.lua_script import LuaScript

# KEYS: the registry. ARGV: tag of replicas, slot or "" for any, value, milliseconds. Returns the slot, or -1 if taken.
CLAIM_SLOT = LuaScript(
    """
local function claim(slot)
  if not redis.call('SET', ARGV[1] .. ':slot:' .. slot, ARGV[3], 'NX', 'PX', ARGV[4]) then return false end
  redis.call('HSET', KEYS[1], slot, ARGV[3])
  return true
end
if ARGV[2] ~= '' then return claim(ARGV[2]) and tonumber(ARGV[2]) or -1 end
local slot = 0
while not claim(string.format('%d', slot)) do slot = slot + 1 end
return slot
"""
)

# KEYS: the slot, the registry. ARGV: number of the slot, value, milliseconds. Returns 1 if the lease never expired, 2
# if it had expired and was regained, and 0 if another replica holds the slot.
RENEW_SLOT = LuaScript(
    """
local found = redis.call('GET', KEYS[1])
if found == ARGV[2] then
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
  return 1
end
if found then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
return 2
"""
)

# KEYS: the slot, the registry. ARGV: number of the slot, value.
LEAVE_SLOT = LuaScript(
    """
if redis.call('GET', KEYS[1]) == ARGV[2] then
  redis.call('DEL', KEYS[1])
  redis.call('HDEL', KEYS[2], ARGV[1])
end
return 1
"""
)

# KEYS: the registry. ARGV: tag of replicas, then slots, or none for all slots. Returns for each slot its number,
# its last value, and 1 if the replica with that value is alive, else 0.
ROSTER = LuaScript(
    """
local told = {}
local function tell(slot, value)
  told[#told + 1] = slot
  told[#told + 1] = value
  told[#told + 1] = redis.call('GET', ARGV[1] .. ':slot:' .. slot) == value and 1 or 0
end
if #ARGV > 1 then
  for at = 2, #ARGV do
    local value = redis.call('HGET', KEYS[1], ARGV[at])
    if value then tell(ARGV[at], value) end
  end
else
  local found = redis.call('HGETALL', KEYS[1])
  for at = 1, #found, 2 do tell(found[at], found[at + 1]) end
end
return told
"""
)

# Changes shared state. KEYS: hash, revision, positions, principals. ARGV: channel, sender, kind of change, field,
# value, principal. Returns 1 if anything has changed. In that case, it notifies the other replicas.
CHANGE_SHARED = LuaScript(
    """
local kind, field, value = ARGV[3], ARGV[4], ARGV[5]
local there = redis.call('HGET', KEYS[1], field)
if kind == 'add' or kind == 'add over plain' then
  if there and (kind == 'add' or not string.match(there, '^%d+ p')) then return 0 end
  redis.call('HSET', KEYS[1], field, string.format('%d', redis.call('INCR', KEYS[3])) .. ' ' .. value)
  redis.call('SADD', KEYS[4], ARGV[6])
elseif kind == 'replace' then
  if not there then return 0 end
  redis.call('HSET', KEYS[1], field, string.match(there, '^%d+ ') .. value)
elseif kind == 'put' then
  redis.call('HSET', KEYS[1], field, value)
else
  if not there then return 0 end
  redis.call('HDEL', KEYS[1], field)
end
redis.call('INCR', KEYS[2])
redis.call('PUBLISH', ARGV[1], ARGV[2])
return 1
"""
)

# KEYS: the servers of a principal, revision. ARGV: channel, sender, name, expected entry, new entry. Returns 1
# if the entry was replaced.
SEAL_SERVER = LuaScript(
    """
if redis.call('HGET', KEYS[1], ARGV[3]) ~= ARGV[4] then return 0 end
redis.call('HSET', KEYS[1], ARGV[3], ARGV[5])
redis.call('INCR', KEYS[2])
redis.call('PUBLISH', ARGV[1], ARGV[2])
return 1
"""
)

OF_REPLICAS = (CLAIM_SLOT, RENEW_SLOT, LEAVE_SLOT, ROSTER, CHANGE_SHARED, SEAL_SERVER)
