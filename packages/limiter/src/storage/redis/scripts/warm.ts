/** Warm calls: decided by the server. */

import { TOKEN_MS } from "./commit.ts";
import { script } from "./script.ts";

/** The deepest debt, `DEBT_MILLI_MAX` of `core/bucket.ts`. */
const DEBT_MAX = "8007199254740991";

/**
 * A row is an array: build, parent (empty without one), whether it cascades, the slots that are
 * held, until, events; then seven numbers for each limit: capacity, refill, period, time, tokens,
 * remainder, used. Numbers are packed: half the time of numbers as text, and exact below 2^53.
 */
export const ROW_HEAD = 6;
export const ROW_STRIDE = 7;

const HEAD = `local SAFE, floor = 9007199254740991, math.floor
local now, strict = tonumber(ARGV[1]), ARGV[2] == '1'

local function spend(token)
  redis.call('SET', token, string.format('%.0f', now), 'PX', ${2 * TOKEN_MS})
end

-- Refills the limit whose numbers begin at b; false: a step decides. A clock behind the row earns
-- nothing; where it is the caller's own, a step decides. Products are exact below 2^53; what passes
-- it is full beyond doubt, or for a step to decide. A limit without refill has periods: it keeps
-- its numbers, and its remainder is the end of the period.
local function settle(w, b)
  local fill, gone = w[b + 1], now - w[b + 3]
  if strict and gone < 0 then return false end
  if fill == 0 then return true end
  if gone > 0 then w[b + 3] = now else gone = 0 end
  local cap, period, t = w[b], w[b + 2], w[b + 4]
  local parts, room = gone * fill + w[b + 5], cap - t
  if room > SAFE then return false end
  if parts > SAFE then
    if parts * 0.9999999 < (room + 1) * period then return false end
    w[b + 4], w[b + 5] = cap, 0
    return true
  end
  local q = floor(parts / period)
  if q >= room then w[b + 4], w[b + 5] = cap, 0
  else w[b + 4], w[b + 5] = t + q, parts - q * period end
  return true
end

-- Moves slots of limit i to an entry, or from it; false where it has fewer than are given back.
local function move(w, entry, i, milli)
  local held, head = w[4], string.format(';%s %.0f ', entry, i)
  local at = string.find(held, head, 1, true)
  if at then
    local digits = string.match(held, '^%d+', at + #head)
    held = string.sub(held, 1, at - 1) .. string.sub(held, at + #head + #digits)
    milli = milli + tonumber(digits)
  end
  if milli < 0 then return false end
  if held == '' then held = ';' end
  if milli > 0 then held = head .. string.format('%.0f', milli) .. held end
  w[4] = held == ';' and '' or held
  return true
end`;

/**
 * KEYS: the system config of the namespace, then the rows of all calls, each once. ARGV: the time;
 * whether it is the caller's own clock; the config version that the callers know, or nothing; the
 * calls as JSON; then all builds, each once. A call is a list of legs. A leg is the place of its
 * row among the keys, that of its build among the arguments, its parent, whether it cascades, its
 * events, and the amounts of each limit: to take, and where they differ from that, to have and to
 * count; where slots are taken, the entry for each limit of slots, with a + where it need not be
 * there, and the place of the key of the call's token.
 *
 * Decides the calls one after the other, and writes the rows at the end. Answers with the config
 * version and an answer for each call: nil when a row is missing, was built from other limits or is
 * no longer valid; else the outcome and all balances; where limits have periods, also the ends of
 * all periods and what they have granted. Without answers, the config is newer than the callers
 * know. Nothing is changed but by a grant.
 */
export const CONSUME = script(`
${HEAD}
local version = tonumber(string.match(redis.call('GETRANGE', KEYS[1], 0, 16), '^%d+') or 0)
local answers, known = {version}, tonumber(ARGV[3])
if known and version > known then return answers end
local rows, isChanged, isSpent = {}, {}, {}

-- Reads a row and refills its limits, once; false where it is not warm.
local function rowOf(at)
  local w = rows[at]
  if w ~= nil then return w end
  local packed = redis.call('GET', KEYS[at])
  w = packed and cmsgpack.unpack(packed)
  if w and now >= w[5] then w = false end
  for b = ${ROW_HEAD + 1}, w and #w or 0, ${ROW_STRIDE} do
    if not settle(w, b) then w = false break end
  end
  rows[at] = w
  return w
end

local function decide(legs)
  local fits, owes, periods = true, false, false
  for _, leg in ipairs(legs) do
    local w = rowOf(leg[1])
    if not w or w[1] ~= ARGV[leg[2]] or w[2] ~= leg[3] or (leg[4] ~= '' and w[3] ~= leg[4]) then
      return false
    end
    local takes = leg[6]
    local gates, counts, entries = leg[7] or takes, leg[8] or takes, leg[9] or {}
    if leg[10] then
      local spent = redis.call('GET', KEYS[leg[10]])
      if spent and tonumber(spent) > now - ${TOKEN_MS} then return false end
    end
    for i, taken in ipairs(takes) do
      local b = ${ROW_HEAD + 1 - ROW_STRIDE} + ${ROW_STRIDE} * i
      local t, gate, entry = w[b + 4], gates[i], entries[i] or ''
      if entry ~= '' then
        -- A bucket that was made again lacks the entry: a step gives the call another one.
        local isNew = string.sub(entry, 1, 1) == '+'
        if not isNew and not string.find(w[4], ';' .. entry .. ' ', 1, true) then return false end
      elseif w[b + 1] == 0 then
        -- A call after the end of a period opens the next one, in a step.
        if taken ~= 0 and now >= w[b + 5] then return false end
        periods = true
      end
      if taken > 0 and taken > t then owes = true end
      if gate > 0 and gate > t then fits = false end
      if w[b + 6] + counts[i] > SAFE then return false end
    end
  end
  -- A soft limit that goes into debt is counted as overdrawn, by a step.
  if fits and owes then return false end
  local out = {fits and 1 or 0}
  for _, leg in ipairs(legs) do
    local at, takes = leg[1], leg[6]
    local w, counts, entries = rows[at], leg[8] or takes, leg[9] or {}
    for i, taken in ipairs(takes) do
      local b, entry = ${ROW_HEAD + 1 - ROW_STRIDE} + ${ROW_STRIDE} * i, entries[i] or ''
      if fits then
        w[b + 4] = w[b + 4] - taken
        if entry == '' then
          w[b + 6] = w[b + 6] + counts[i]
        else
          move(w, string.gsub(entry, '^%+', ''), i, taken)
          w[b + 6] = math.max(w[b + 6], w[b] - w[b + 4])
        end
      end
      out[#out + 1] = w[b + 4]
    end
    if fits then
      w[6], isChanged[at] = w[6] + leg[5], true
      if leg[10] then isSpent[leg[10]] = true end
    end
  end
  for place = periods and 5 or -1, 0, -5 do
    for _, leg in ipairs(legs) do
      local w = rows[leg[1]]
      for b = ${ROW_HEAD + 1}, #w, ${ROW_STRIDE} do out[#out + 1] = w[b + place] end
    end
  end
  return out
end

for i, legs in ipairs(cjson.decode(ARGV[4])) do answers[i + 1] = decide(legs) end
for at = 2, #KEYS do
  if isChanged[at] then redis.call('SET', KEYS[at], cmsgpack.pack(rows[at])) end
  if isSpent[at] then spend(KEYS[at]) end
end
return answers`);

/**
 * KEYS: the row, and the key of the token. ARGV: the time; whether it is the caller's own clock;
 * build, events, how many limits, and for each the amounts to take and to count, the end of the
 * period that was consumed in, and the entry that slots are given back from. Answers 1 when the
 * adjustment is done, now or before; nil, with nothing written: not warm.
 */
export const ADJUST = script(`
${HEAD}
local used = redis.call('GET', KEYS[2])
if used and tonumber(used) > now - ${TOKEN_MS} then return 1 end
local packed = redis.call('GET', KEYS[1])
if not packed then return false end
local w = cmsgpack.unpack(packed)
if w[1] ~= ARGV[3] or now >= w[5] then return false end
w[6] = w[6] + tonumber(ARGV[4])
for i = 1, tonumber(ARGV[5]) do
  local b, p = ${ROW_HEAD + 1 - ROW_STRIDE} + ${ROW_STRIDE} * i, 2 + 4 * i
  local taken, counted, entry = tonumber(ARGV[p]), tonumber(ARGV[p + 1]), ARGV[p + 3]
  if entry ~= '' then
    -- Slots of an entry that is gone are not given back.
    if taken < 0 and move(w, entry, i, taken) then w[b + 4] = w[b + 4] - taken end
    taken, counted = 0, 0
  end
  if taken ~= 0 and w[b + 1] == 0 and (now >= w[b + 5] or tonumber(ARGV[p + 2]) ~= w[b + 5]) then
    -- It was consumed in another period: a step decides what of it counts.
    return false
  end
  if taken < 0 then
    w[b + 4] = w[b + 4] - taken
    if w[b + 4] > SAFE then return false end
  elseif taken > 0 then
    if not settle(w, b) or w[b + 4] < taken then
      -- A debt may have to be kept for longer: a step decides.
      return false
    end
    w[b + 4] = math.max(w[b + 4] - taken, -${DEBT_MAX})
  end
  w[b + 6] = w[b + 6] + counted
  if math.abs(w[b + 6]) > SAFE then return false end
end
spend(KEYS[2])
redis.call('SET', KEYS[1], cmsgpack.pack(w))
return 1`);

/** KEYS: a row. ARGV: the time; the end of the hold. Answers with 1, or with 0: another has it. */
export const HOLD = script(`
local text = redis.call('GET', KEYS[1])
local row = text and cmsgpack.unpack(text)
if not row or row[5] <= -tonumber(ARGV[1]) then return 0 end
row[5] = -tonumber(ARGV[2])
redis.call('SET', KEYS[1], cmsgpack.pack(row))
return 1`);
