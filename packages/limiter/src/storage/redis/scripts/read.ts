/** Reads, all as of one moment. */

import { script } from "./script.ts";

/**
 * KEYS: the item and the row of each cell. Answers three values for each cell: the item, its
 * revision, and what the row has unpacked; nil where there is none. A revision is the digest of
 * all that is stored: a commit depends on what was read being there, not on its history.
 */
export const READ = script(`
local out = {}
for i = 1, #KEYS, 2 do
  local item = redis.call('GET', KEYS[i])
  local row = item and redis.call('GET', KEYS[i + 1])
  out[#out + 1] = item
  out[#out + 1] = item and redis.sha1hex(item .. (row or ''))
  out[#out + 1] = row and cmsgpack.unpack(row)
end
return out`);

/** KEYS: a sorted set. ARGV: the bounds, REV or nothing, how many. */
export const PAGE = script(`
if ARGV[3] == 'REV' then
  return redis.call('ZRANGE', KEYS[1], ARGV[2], ARGV[1], 'BYLEX', 'REV', 'LIMIT', 0, ARGV[4])
end
return redis.call('ZRANGE', KEYS[1], ARGV[1], ARGV[2], 'BYLEX', 'LIMIT', 0, ARGV[4])`);

/** KEYS: a log and the number of its last record. ARGV: after which, how many. */
export const LOG = script(`
local last = tonumber(redis.call('GET', KEYS[2]) or '0')
if ARGV[2] == '0' then return {last, {}} end
local first = string.format('%.0f', tonumber(ARGV[1]) + 1)
return {last, redis.call('XRANGE', KEYS[1], first, '+', 'COUNT', ARGV[2])}`);

/** KEYS: the set of tags that have a log. ARGV: a tag to add, or nothing. */
export const TAGS = script(`
if ARGV[1] then return redis.call('SADD', KEYS[1], ARGV[1]) end
return redis.call('SMEMBERS', KEYS[1])`);
