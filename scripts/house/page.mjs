/** The text that `npm run house` prints: about two screens, the long lists cut. */

import { RUN_LINES_MIN } from "./duplicates.mjs";
import { LONG_LINES, SIDE_BY_SIDE_MAX, SMALL_LINES } from "./figures.mjs";
import { groupBy } from "./sources.mjs";

const LISTED_MAX = 10;
const COLUMNS = ["files", "lines", "code", "comments", "imports", "blank", "mean", "median"];

/** Returns the text of a report. */
export function pageOf(report) {
  return [
    ...roomTable(report),
    "",
    ...crowded(report.crowded),
    ...list(
      `files above ${LONG_LINES} lines`,
      report.long.map(({ path, lines }) => `${lines} ${short(path)}`),
    ),
    ...list(
      `files of at most ${SMALL_LINES} lines with one importer`,
      inOrder(report.small).map(
        ([importer, files]) => `${short(importer)} <- ${files.map(nameOf).join(", ")}`,
      ),
      `${report.small.length} in ${new Set(report.small.map(({ importer }) => importer)).size}`,
    ),
    ...list(
      `pairs of ${RUN_LINES_MIN} or more equal lines`,
      report.duplicates.map(({ lines, places }) => `${lines} ${places.map(short).join("  ")}`),
    ),
    ...walkTable(report.walks),
    testLine(report.testTime),
  ].join("\n");
}

function roomTable({ rooms, total }) {
  const header = `${"room".padEnd(26)}${COLUMNS.map((name) => name.padStart(9)).join("")}`;
  const rowOf = (row) => {
    const name = row.part === "" ? row.room : `  ${row.part}`;
    return name.padEnd(26) + COLUMNS.map((column) => figure(row[column]).padStart(9)).join("");
  };
  return [header, ...rooms.map(rowOf), rowOf(total)];
}

function crowded(folders) {
  if (folders.length === 0) return [`No folder has more than ${SIDE_BY_SIDE_MAX} files.`, ""];
  const names = folders.map(({ folder, files }) => `FAILED ${files} ${short(folder)}`);
  return list(`folders with more than ${SIDE_BY_SIDE_MAX} files`, names);
}

/** Groups files by their importer, those with most files first. */
function inOrder(files) {
  const groups = [...groupBy(files, ({ importer }) => importer)];
  return groups.sort(([, one], [, other]) => other.length - one.length);
}

function list(title, items, count = String(items.length)) {
  const shown = items.slice(0, LISTED_MAX).map((item) => `  ${item}`);
  const more = items.length > LISTED_MAX ? [`  … (--json has all)`] : [];
  return [`${title}: ${count}`, ...shown, ...more, ""];
}

function walkTable(walks) {
  if (walks === undefined) return ["The walks were left out.", ""];
  const head = `${"walk".padEnd(50)}${["files", "functions", "calls"].map((name) => name.padStart(11)).join("")}`;
  const rows = walks.map(
    ({ name, files, functions, calls }) =>
      name.padEnd(50) +
      [files, functions, calls].map((value) => figure(value).padStart(11)).join(""),
  );
  return [head, ...rows, ""];
}

function testLine(time) {
  if (time === undefined) return "The time of npm test is not known: it has not run here.";
  const day = time.endedAt.slice(0, 10);
  return `npm test took ${figure(time.seconds)} s on ${day}: ${time.result}.`;
}

function figure(value) {
  return value.toLocaleString("en-US");
}

/** Leaves out what all paths have. */
function short(path) {
  return path.replace(/^packages\//, "").replace("/src/", "/");
}

function nameOf({ path }) {
  return path.replace(/^.*\//, "").replace(/\.tsx?$/, "");
}
