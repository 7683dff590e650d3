/**
 * Finds pairs of duplicated code: runs of equal lines in two places. White space is folded; lines
 * without a word, imports and comments do not count. A copy with other names is not found.
 */

export const RUN_LINES_MIN = 6;

/** Returns the pairs of runs, the longest first, each with its length and its two places. */
export function duplicatedRuns(sources, minimum = RUN_LINES_MIN) {
  const texts = sources.map(wordLines);
  const pairs = [];
  for (const places of sharedWindows(texts, minimum).values()) {
    for (const [index, second] of places.entries()) {
      for (const first of places.slice(0, index)) {
        const length = runLength(texts, first, second, minimum);
        if (length >= minimum) pairs.push(pairOf(texts, first, second, length));
      }
    }
  }
  return pairs.sort((one, other) => other.lines - one.lines);
}

/** Returns the lines that count, with their numbers. */
function wordLines({ path, lines, kinds }) {
  const counted = lines
    .map((line, at) => ({ text: line.trim().replace(/\s+/g, " "), number: at + 1 }))
    .filter(({ text }, at) => kinds[at] === "code" && /\w/.test(text));
  return { path, counted };
}

/** Returns the places of each window of lines that occurs more than once. */
function sharedWindows(texts, minimum) {
  const windows = new Map();
  for (const [file, { counted }] of texts.entries()) {
    for (let at = 0; at + minimum <= counted.length; at += 1) {
      const window = counted.slice(at, at + minimum);
      const key = window.map(({ text }) => text).join("\n");
      const places = windows.get(key);
      if (places === undefined) windows.set(key, [{ file, at }]);
      else places.push({ file, at });
    }
  }
  return new Map([...windows].filter(([, places]) => places.length > 1));
}

/** Returns the length of a run that starts at both places; 0 when it starts earlier. */
function runLength(texts, first, second, minimum) {
  const lineOf = ({ file, at }, offset) => texts[file].counted[at + offset]?.text;
  const isEqual = (offset) => {
    const line = lineOf(first, offset);
    return line !== undefined && line === lineOf(second, offset);
  };
  if (isEqual(-1)) return 0;
  let length = minimum;
  while (isEqual(length)) length += 1;
  // Lines that repeat themselves are a list, not two copies.
  return first.file === second.file ? Math.min(length, second.at - first.at) : length;
}

function pairOf(texts, first, second, lines) {
  const placeOf = ({ file, at }) => `${texts[file].path}:${texts[file].counted[at].number}`;
  return { lines, places: [placeOf(first), placeOf(second)] };
}
