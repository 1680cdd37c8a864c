"""Lua scripts for sessions. Redis runs each atomically: no client sees a partial change, even after a fault.

The hash of a session has these fields: `o` owner ("" if none), `f` fence, `r` revision, `q` number of the last commit,
`x` expires_at, `d` due_at, `p` principal, `k` keys of the session, `t` when Redis deletes it, `c` time of the last
change. An owner is `slot:epoch:term`, and the epoch identifies the process. All key names of a session start with the
tag of its partition, so they are on the same node of a cluster:

    TAG:session:ID   the hash              TAG:due:OWNER   ids by due_at, one index per owner
    TAG:key:DIGEST   the id for a key      TAG:owners      the owners that have such an index
    TAG:expiry       all ids by expires_at
    TAG:chunks:ID    large parts of the session, as chunks
"""

from emceepee.store.redis.scripts.lua_script import LuaScript

MOST_UNPACKED = 4000  # arguments of one call in Lua, well below its limit

_TOOLS = """
local function epoch(owner) return string.match(owner, ':(%d+):') end

local function lines(text)
  local found = {}
  for line in string.gmatch(text, '[^\\n]+') do found[#found + 1] = line end
  return found
end

local function key_name(tag, line) return tag .. ':key:' .. string.sub(line, 1, 64) end

local function leads_elsewhere(tag, line, id)
  local other = redis.call('GET', key_name(tag, line))
  if not other or other == id then return false end
  local its = redis.call('HGET', tag .. ':session:' .. other, 'k')
  return its and string.find(its, string.sub(line, 1, 64), 1, true) ~= nil
end

local function drop_key(tag, line, id)
  local name = key_name(tag, line)
  if redis.call('GET', name) == id then redis.call('DEL', name) end
end

local function index_due(tag, id, before, due_before, after, due)
  if due_before and due_before ~= '' and (before ~= after or due_before ~= due) then
    redis.call('ZREM', tag .. ':due:' .. before, id)
  end
  if due ~= '' and (before ~= after or due_before ~= due) then
    redis.call('ZADD', tag .. ':due:' .. after, due, id)
    redis.call('SADD', tag .. ':owners', after)
  end
end

local function delete(tag, id, owner, due)
  local session = tag .. ':session:' .. id
  for _, line in ipairs(lines(redis.call('HGET', session, 'k') or '')) do drop_key(tag, line, id) end
  if due ~= '' then redis.call('ZREM', tag .. ':due:' .. owner, id) end
  redis.call('ZREM', tag .. ':expiry', id)
  redis.call('DEL', session)
  redis.call('UNLINK', tag .. ':chunks:' .. id)
end
"""

# KEYS: the hash of each session. ARGV: tag, owner, epoch, now, allowed lag of `t`, and per session the words from
# `RedisCommitter._add_words`. Returns per session its new revision, or 0 if the commit was refused.
COMMIT = LuaScript(
    _TOOLS
    + """
local tag, owner, mine, now, lag = ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])
local at, made, wishes, wish_of = 6, {}, {}, {}

local function each(first, count, most, work)
  local last = first + count - 1
  for from = first, last, most do work(from, math.min(from + most - 1, last)) end
end

for number, session in ipairs(KEYS) do
  local id, strict, fence, base, doubts, seq, expires, due, principal, keys, till, ttl, puts, deletes =
    unpack(ARGV, at, at + 13)
  local first_put = at + 14
  local first_delete = first_put + tonumber(puts)
  at = first_delete + tonumber(deletes)
  local h = redis.call('HMGET', session, 'o', 'f', 'r', 'q', 'x', 'd', 'k', 't')
  local had, was, good = tonumber(h[3] or '0'), tonumber(base), nil
  if h[3] then
    good = epoch(h[1]) == mine and (h[2] == fence or (was == 0 and h[2] == '1')) and had >= was
      and had <= was + tonumber(doubts) and tonumber(seq) > tonumber(h[4])
  else
    good = was == 0
  end
  if good and strict == '1' then
    for _, line in ipairs(lines(keys)) do good = good and not leads_elsewhere(tag, line, id) end
  end
  made[number] = good and had + 1 or 0
  if good then
    local head = {'r', had + 1, 'q', seq, 'c', now}
    local function set(name, value) head[#head + 1] = name; head[#head + 1] = value end
    if not h[3] then set('f', '1'); set('p', principal) end
    if h[1] ~= owner then set('o', owner) end
    if h[5] ~= expires then
      set('x', expires)
      redis.call('ZADD', tag .. ':expiry', expires, id)
    end
    if h[6] ~= due then set('d', due) end
    index_due(tag, id, h[1], h[6], owner, due)
    each(first_delete, tonumber(deletes), MOST, function(from, to)
      redis.call('HDEL', session, unpack(ARGV, from, to))
    end)
    each(first_put, tonumber(puts), MOST, function(from, to)
      redis.call('HSET', session, unpack(ARGV, from, to))
    end)
    local leading = h[7] or ''
    if leading ~= keys or wish_of[id] then
      local kept = {}
      for _, line in ipairs(lines(leading)) do
        if string.find('\\n' .. keys .. '\\n', '\\n' .. line .. '\\n', 1, true) then
          kept[#kept + 1] = line
        else
          drop_key(tag, line, id)
        end
      end
      leading = table.concat(kept, '\\n')
      local wish = wish_of[id]
      if not wish then wish = {session, id}; wishes[#wishes + 1] = wish; wish_of[id] = wish end
      wish[3], wish[4] = keys, ttl
    end
    if not h[7] or leading ~= h[7] then set('k', leading) end
    if not h[8] or math.abs(tonumber(till) - tonumber(h[8])) > lag then set('t', till) end
    redis.call('HSET', session, unpack(head))
    if head[#head - 1] == 't' then
      redis.call('PEXPIRE', session, ttl)
      redis.call('PEXPIRE', tag .. ':chunks:' .. id, ttl)
      for _, line in ipairs(lines(leading)) do redis.call('PEXPIRE', key_name(tag, line), ttl) end
    end
  end
end

for _, wish in ipairs(wishes) do
  local session, id, keys, ttl = unpack(wish)
  local gained = {}
  for _, line in ipairs(lines(keys)) do
    if not leads_elsewhere(tag, line, id) then
      redis.call('SET', key_name(tag, line), id, 'PX', ttl)
      gained[#gained + 1] = line
    end
  end
  redis.call('HSET', session, 'k', table.concat(gained, '\\n'))
end
return made
""".replace("MOST", str(MOST_UNPACKED))
)

_TAKE = """
local function take(tag, id, owner, mine, expected)
  local session = tag .. ':session:' .. id
  local h = redis.call('HMGET', session, 'o', 'f', 'd')
  if not h[2] then return false end
  local holder = h[1] .. '/' .. h[2]
  if h[1] ~= '' and epoch(h[1]) ~= mine and holder ~= expected then return {id, holder} end
  redis.call('HSET', session, 'o', owner, 'f', string.format('%d', tonumber(h[2]) + 1), 'q', '0')
  index_due(tag, id, h[1], h[3], owner, h[3])
  return {id, '', redis.call('HGETALL', session)}
end
"""

# KEYS: the name of a key. ARGV: tag, digest, owner, epoch, holder that may be replaced. Returns nothing if there is no
# session, the id and the holder if it is held, or the id, "", and all fields if it was taken.
TAKE_BY_KEY = LuaScript(
    _TOOLS
    + _TAKE
    + """
local tag, digest = ARGV[1], ARGV[2]
local id = redis.call('GET', KEYS[1])
if not id then return false end
local its = redis.call('HGET', tag .. ':session:' .. id, 'k')
if not its or not string.find(its, digest, 1, true) then return false end
return take(tag, id, ARGV[3], ARGV[4], ARGV[5])
"""
)

# KEYS: the hash. ARGV: tag, id, owner, epoch, expected holder.
TAKE_BY_ID = LuaScript(
    _TOOLS
    + _TAKE
    + """
local holder = redis.call('HMGET', KEYS[1], 'o', 'f')
if not holder[2] or holder[1] .. '/' .. holder[2] ~= ARGV[5] then return false end
return take(ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5])
"""
)

# KEYS: the hashes. ARGV: tag, epoch, new owner ("" releases the session), and per session its id and fence. Returns
# per session 1 if this process held it under that fence, else 0.
HAND_TO = LuaScript(
    _TOOLS
    + """
local tag, mine, owner, done = ARGV[1], ARGV[2], ARGV[3], {}
for number, session in ipairs(KEYS) do
  local id, fence = ARGV[2 + 2 * number], ARGV[3 + 2 * number]
  local h = redis.call('HMGET', session, 'o', 'f', 'd')
  if h[2] == fence and epoch(h[1]) == mine then
    if h[1] ~= owner then
      redis.call('HSET', session, 'o', owner)
      index_due(tag, id, h[1], h[3], owner, h[3])
    end
    done[number] = 1
  else
    done[number] = 0
  end
end
return done
"""
)

# KEYS: the hash. ARGV: tag, id, epoch of the owner or "", fence or "", exact holder or "". Returns 1 if deleted.
FORGET = LuaScript(
    _TOOLS
    + """
local h = redis.call('HMGET', KEYS[1], 'o', 'f', 'd')
if not h[2] then return 0 end
if ARGV[3] ~= '' and (epoch(h[1]) ~= ARGV[3] or h[2] ~= ARGV[4]) then return 0 end
if ARGV[3] == '' and h[1] .. '/' .. h[2] ~= ARGV[5] then return 0 end
delete(ARGV[1], ARGV[2], h[1], h[3])
return 1
"""
)

# KEYS: the set of owners. ARGV: tag. Returns for each owner its name and the earliest due_at of its sessions.
NEXT_DUE = LuaScript(
    """
local found = {}
for _, owner in ipairs(redis.call('SMEMBERS', KEYS[1])) do
  local first = redis.call('ZRANGE', ARGV[1] .. ':due:' .. owner, 0, 0, 'WITHSCORES')
  if first[1] then
    found[#found + 1] = owner
    found[#found + 1] = redis.call('HGET', ARGV[1] .. ':session:' .. first[1], 'd') or first[2]
  else
    redis.call('SREM', KEYS[1], owner)
  end
end
return found
"""
)

# KEYS: the set of owners. ARGV: tag, now, limit per owner. Returns for each session its id, due_at, and holder.
DUE = LuaScript(
    """
local found = {}
for _, owner in ipairs(redis.call('SMEMBERS', KEYS[1])) do
  local index = ARGV[1] .. ':due:' .. owner
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', index, '-inf', ARGV[2], 'LIMIT', 0, ARGV[3])) do
    local h = redis.call('HMGET', ARGV[1] .. ':session:' .. id, 'o', 'f', 'd')
    if h[2] then
      found[#found + 1] = id
      found[#found + 1] = h[3]
      found[#found + 1] = h[1] .. '/' .. h[2]
    else
      redis.call('ZREM', index, id)
    end
  end
end
return found
"""
)

# KEYS: the index of all sessions. ARGV: tag, first and last rank. Returns the total number, then for each session its
# id, expires_at, and holder. Sessions that Redis has expired are removed from the indexes.
EXPIRY = LuaScript(
    """
local found = {0}
for _, id in ipairs(redis.call('ZRANGE', KEYS[1], ARGV[2], ARGV[3])) do
  local h = redis.call('HMGET', ARGV[1] .. ':session:' .. id, 'o', 'f', 'x')
  if h[2] then
    found[#found + 1] = id
    found[#found + 1] = h[3]
    found[#found + 1] = h[1] .. '/' .. h[2]
  else
    redis.call('ZREM', KEYS[1], id)
    for _, owner in ipairs(redis.call('SMEMBERS', ARGV[1] .. ':owners')) do
      redis.call('ZREM', ARGV[1] .. ':due:' .. owner, id)
    end
  end
end
found[1] = redis.call('ZCARD', KEYS[1])
return found
"""
)

# KEYS: the hash of the session, the hash of its chunks. ARGV: alternating names and chunks. Returns 1, or 0 if the
# session does not exist.
PUT_CHUNKS = LuaScript(
    """
local left = redis.call('PTTL', KEYS[1])
if left == -2 then return 0 end
redis.call('HSET', KEYS[2], unpack(ARGV))
if left > 0 then redis.call('PEXPIRE', KEYS[2], left) end
return 1
"""
)

OF_SESSIONS = (COMMIT, TAKE_BY_KEY, TAKE_BY_ID, HAND_TO, FORGET, NEXT_DUE, DUE, EXPIRY, PUT_CHUNKS)
