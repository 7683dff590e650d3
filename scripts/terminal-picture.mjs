/**
 * Draws docs/images/terminal.svg from a real run of the built command line: `npm run build && node
 * scripts/terminal-picture.mjs`. Lines appear one after the other; where animation is switched off
 * they are all there.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const COMMANDS = [
  "zae-limiter system set-limits -l rpm:100 -l tpm:1000",
  "zae-limiter acquire key-1 gpt-4 -c rpm=1 -c tpm=600",
  "zae-limiter acquire key-1 gpt-4 -c rpm=1 -c tpm=600",
  "zae-limiter peek key-1 gpt-4",
];
const COLUMN = 8.4;
const ROW = 20;
const LEFT = 20;
const TOP = 56;
const COMMAND_SECONDS = 1.4;
const LINE_SECONDS = 0.12;

/** Runs all commands in an empty folder, and returns their lines with the second they appear at. */
function record() {
  const folder = mkdtempSync(join(tmpdir(), "zae-limiter-picture-"));
  try {
    let at = 0.4;
    return COMMANDS.flatMap((command) => {
      const lines = [{ text: `$ ${command}`, at }];
      at += COMMAND_SECONDS / 2;
      for (const text of run(command, folder)) {
        lines.push({ text, at });
        at += LINE_SECONDS;
      }
      at += COMMAND_SECONDS;
      return lines;
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function run(command, cwd) {
  const [, ...args] = command.split(" ");
  const env = { ...process.env, ZAEL_URL: undefined, NO_COLOR: "1", COLUMNS: "84" };
  const { stdout, stderr } = spawnSync(
    process.execPath,
    [join(root, "dist/cli/main.js"), ...args],
    { cwd, env, encoding: "utf8" },
  );
  return `${stdout}${stderr}`.trimEnd().split("\n");
}

function colorOf(text) {
  if (text.startsWith("$")) return "#e2e8f0";
  if (text.startsWith("Granted")) return "#4ade80";
  if (text.startsWith("Refused")) return "#f87171";
  return "#94a3b8";
}

function escaped(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

function draw(lines) {
  const width = Math.ceil(2 * LEFT + COLUMN * Math.max(...lines.map(({ text }) => text.length)));
  const height = TOP + ROW * lines.length;
  const rows = lines.map(
    ({ text, at }, index) =>
      `<text class="l" style="animation-delay:${at.toFixed(2)}s" x="${LEFT}" ` +
      `y="${TOP + ROW * index}" fill="${colorOf(text)}">${escaped(text)}</text>`,
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">
<title>zae-limiter in a terminal: two acquires, the second one refused</title>
<style>
.l { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; white-space: pre; }
@media (prefers-reduced-motion: no-preference) {
  .l { opacity: 0; animation: show 0.01s forwards; }
  @keyframes show { to { opacity: 1; } }
}
</style>
<rect width="${width}" height="${height}" rx="8" fill="#0f172a"/>
<circle cx="20" cy="20" r="6" fill="#f87171"/>
<circle cx="40" cy="20" r="6" fill="#fbbf24"/>
<circle cx="60" cy="20" r="6" fill="#4ade80"/>
${rows.join("\n")}
</svg>
`;
}

writeFileSync(join(root, "docs/images/terminal.svg"), draw(record()));
