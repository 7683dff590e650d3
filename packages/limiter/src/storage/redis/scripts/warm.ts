/** Warm calls: decided by the server. */

import { TOKEN_MS } from "./commit.ts";
import { script } from "./script.ts";

/** The deepest debt, `DEBT_MILLI_MAX` of `core/bucket.ts`. */
const DEBT_MAX = "8007199254740991";

/**
 * A row is an array: build, parent (empty without one), whether it cascades, until, events; then
 * seven numbers for each limit: capacity, refill, period, time, tokens, remainder, used. Numbers
 * are packed: half the time of numbers as text, and exact below 2^53.
 */
export const ROW_HEAD = 5;
export const ROW_STRIDE = 7;

/**
 * Refills the limit whose numbers begin at `b`. A clock behind the row earns nothing; where it is
 * the caller's own, a step decides. Products are exact below 2^53; what passes it is full beyond
 * doubt, or for a step to decide. A limit without refill has periods: it keeps its numbers, and its
 * remainder is the end of the period.
 */
const SETTLE = `local cap, fill, t = w[b], w[b + 1], w[b + 4]
    if strict and now < w[b + 3] then return false end
    if fill > 0 then
      local period, gone = w[b + 2], now - w[b + 3]
      if gone > 0 then w[b + 3] = now else gone = 0 end
      local parts, room = gone * fill + w[b + 5], cap - t
      if room > SAFE then return false end
      if parts > SAFE then
        if parts * 0.9999999 < (room + 1) * period then return false end
        t, w[b + 5] = cap, 0
      else
        local q = floor(parts / period)
        if q >= room then t, w[b + 5] = cap, 0
        else t, w[b + 5] = t + q, parts - q * period end
      end
      w[b + 4] = t
    end`;

const HEAD = `local SAFE, floor = 9007199254740991, math.floor
local now, strict = tonumber(ARGV[1]), ARGV[2] == '1'`;

/**
 * KEYS: the system config of the namespace, then a row for each leg. ARGV: the time; whether it is
 * the caller's own clock; the config version that the caller knows; then for each leg build,
 * parent, whether it cascades, events, how many limits, and the amounts of each: to take, to have,
 * to count.
 *
 * Answers nil when a row is missing, was built from other limits or is no longer valid; else the
 * outcome, the config version and all balances; where limits have periods, also the ends of all
 * periods and what they have granted. Nothing is written but by a grant.
 */
export const CONSUME = script(`
${HEAD}
local version = string.match(redis.call('GETRANGE', KEYS[1], 0, 16), '^%d+')
version = version and tonumber(version) or 0
if ARGV[3] ~= '' and version > tonumber(ARGV[3]) then return {2, version} end
local rows, out, ok, debt, periods, p = {}, {0, version}, true, false, false, 4
for l = 2, #KEYS do
  local packed = redis.call('GET', KEYS[l])
  if not packed then return false end
  local w = cmsgpack.unpack(packed)
  local cascades = ARGV[p + 2]
  if w[1] ~= ARGV[p] or w[2] ~= ARGV[p + 1] or now >= w[4]
    or (cascades ~= '' and w[3] ~= cascades) then return false end
  w[5] = w[5] + tonumber(ARGV[p + 3])
  local limits = tonumber(ARGV[p + 4])
  p = p + 5
  for i = 1, limits do
    local b = ${ROW_HEAD + 1 - ROW_STRIDE} + ${ROW_STRIDE} * i
    ${SETTLE}
    local taken, gate, count = tonumber(ARGV[p]), tonumber(ARGV[p + 1]), tonumber(ARGV[p + 2])
    if fill == 0 then
      -- A call after the end of a period opens the next one, in a step.
      if taken ~= 0 and now >= w[b + 5] then return false end
      periods = true
    end
    if taken > 0 and taken > t then debt = true end
    if gate > 0 and gate > t then ok = false end
    out[#out + 1] = t
    w[b + 4] = t - taken
    w[b + 6] = w[b + 6] + count
    if w[b + 6] > SAFE then return false end
    p = p + 3
  end
  rows[l] = w
end
if periods then
  for place = 5, 0, -5 do
    for l = 2, #KEYS do
      for b = ${ROW_HEAD + 1}, #rows[l], ${ROW_STRIDE} do out[#out + 1] = rows[l][b + place] end
    end
  end
end
if not ok then return out end
-- A soft limit that goes into debt is counted as overdrawn, by a step.
if debt then return false end
out[1] = 1
local k = 2
for l = 2, #KEYS do
  local w = rows[l]
  for b = ${ROW_HEAD + 5}, #w, ${ROW_STRIDE} do k = k + 1; out[k] = w[b] end
  redis.call('SET', KEYS[l], cmsgpack.pack(w))
end
return out`);

/**
 * KEYS: the row, and the key of the token. ARGV: the time; whether it is the caller's own clock;
 * build, events, how many limits, and for each the amounts to take and to count, and the end of
 * the period that was consumed in. Answers 1 when the adjustment is done, now or before; nil, with
 * nothing written: not warm.
 */
export const ADJUST = script(`
${HEAD}
local used = redis.call('GET', KEYS[2])
if used and tonumber(used) > now - ${TOKEN_MS} then return 1 end
local packed = redis.call('GET', KEYS[1])
if not packed then return false end
local w = cmsgpack.unpack(packed)
if w[1] ~= ARGV[3] or now >= w[4] then return false end
w[5] = w[5] + tonumber(ARGV[4])
for i = 1, tonumber(ARGV[5]) do
  local b, p = ${ROW_HEAD + 1 - ROW_STRIDE} + ${ROW_STRIDE} * i, 3 + 3 * i
  local taken = tonumber(ARGV[p])
  if taken ~= 0 and w[b + 1] == 0 and (now >= w[b + 5] or tonumber(ARGV[p + 2]) ~= w[b + 5]) then
    -- It was consumed in another period: a step decides what of it counts.
    return false
  end
  if taken < 0 then
    w[b + 4] = w[b + 4] - taken
    if w[b + 4] > SAFE then return false end
  elseif taken > 0 then
    ${SETTLE}
    -- A debt may have to be kept for longer: a step decides.
    if t < taken then return false end
    w[b + 4] = math.max(t - taken, -${DEBT_MAX})
  end
  w[b + 6] = w[b + 6] + tonumber(ARGV[p + 1])
  if math.abs(w[b + 6]) > SAFE then return false end
end
redis.call('SET', KEYS[2], string.format('%.0f', now), 'PX', ${2 * TOKEN_MS})
redis.call('SET', KEYS[1], cmsgpack.pack(w))
return 1`);
