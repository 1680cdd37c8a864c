"""Lua scripts for secrets and locks. Redis runs each atomically."""

from emceepee.store.redis.scripts.lua_script import LuaScript

# KEYS: the hash of a principal, the counter of revisions. ARGV: name, expected revision, value. Returns the new
# revision, or 0 if the current one differs.
PUT_SECRET = LuaScript(
    """
local there = redis.call('HGET', KEYS[1], ARGV[1])
if (there and string.match(there, '^%d+') or '0') ~= ARGV[2] then return 0 end
local revision = redis.call('INCR', KEYS[2])
redis.call('HSET', KEYS[1], ARGV[1], string.format('%d', revision) .. ' ' .. ARGV[3])
return revision
"""
)

# KEYS: the hash of a principal. ARGV: name, expected revision. Returns 1 if this call deleted the secret.
DROP_SECRET = LuaScript(
    """
local there = redis.call('HGET', KEYS[1], ARGV[1])
if not there or string.match(there, '^%d+') ~= ARGV[2] then return 0 end
return redis.call('HDEL', KEYS[1], ARGV[1])
"""
)

# The value of a lock is `OWNER/HOLDER`. KEYS: the lock. ARGV: holder, owner, milliseconds, value of a lock whose
# owner is dead. Returns "" if the holder has the lock now, and otherwise its current value.
LOCK = LuaScript(
    """
local found = redis.call('GET', KEYS[1])
if found and found ~= ARGV[4] and string.match(found, '[^/]*$') ~= ARGV[1] then return found end
redis.call('SET', KEYS[1], ARGV[2] .. '/' .. ARGV[1], 'PX', ARGV[3])
return ''
"""
)

# KEYS: the lock. ARGV: holder.
UNLOCK = LuaScript(
    """
local found = redis.call('GET', KEYS[1])
if found and string.match(found, '[^/]*$') == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 1
"""
)

OF_SECRETS = (PUT_SECRET, DROP_SECRET, LOCK, UNLOCK)
