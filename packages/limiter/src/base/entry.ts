/** Entries of maps that are made when they are first asked for. */

/** Returns what the map has for the key; where it has nothing, `made` is kept and returned. */
export function entryOf<Key, Entry>(
  map: { get(key: Key): Entry | undefined; set(key: Key, entry: Entry): unknown },
  key: Key,
  made: () => NoInfer<Entry>,
): Entry {
  const known = map.get(key);
  if (known !== undefined) return known;
  const entry = made();
  map.set(key, entry);
  return entry;
}
