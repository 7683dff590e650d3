import { mkdirSync, readFileSync, renameSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { Writable } from "node:stream";
import { type AccessEntry, AccessLog } from "@zae-limiter/gateway/access-log.ts";
import { temporaryFolder } from "@zae-limiter/test-support/temporary-folder.ts";
import { expect, test, vi } from "vitest";

const folder = temporaryFolder();
const ENTRY: AccessEntry = {
  time: Date.UTC(2026, 0, 2, 3, 4, 5, 678),
  request_id: "req-1",
  key: "zael-abcde",
  entity_id: "team-a",
  method: "POST",
  path: "/v1/chat/completions",
  api: "chat",
  model: "gpt-4o",
  resource: "gpt-4o",
  upstream: "https://api.openai.com",
  status: 200,
  input_tokens: 10,
  output_tokens: 20,
  cached_tokens: 0,
  is_estimated: false,
  wait_ms: 0,
  first_byte_ms: 12,
  total_ms: 340,
  refused_by: undefined,
};

/** A clock that does not advance by itself, and the lines that the operator gets. */
function options() {
  const lines: string[] = [];
  const time = { nowMs: 0 };
  return { lines, time, clock: () => time.nowMs, tell: (line: string) => void lines.push(line) };
}

function entriesIn(file: string): Record<string, unknown>[] {
  const lines = readFileSync(file, "utf8").split("\n");
  return lines.filter((line) => line !== "").map((line) => JSON.parse(line));
}

test("each call is a line of JSON in a file that only its owner can read", async () => {
  const file = join(folder, "access.log");
  const log = await AccessLog.open(file, options());
  log.write(ENTRY);
  log.write({ ...ENTRY, request_id: "req-2", status: 429, refused_by: "rpm" });
  await log.close();
  expect(entriesIn(file)).toEqual([
    { ...ENTRY, time: "2026-01-02T03:04:05.678Z", refused_by: null },
    {
      ...ENTRY,
      time: "2026-01-02T03:04:05.678Z",
      request_id: "req-2",
      status: 429,
      refused_by: "rpm",
    },
  ]);
  expect(statSync(file).mode & 0o777).toBe(0o600);
});

test("names that a client has chosen are cut and escaped, and the query is left out", async () => {
  const file = join(folder, "odd.log");
  const log = await AccessLog.open(file, options());
  const model = `\u001b[2J\u202e\n${"m".repeat(5000)}`;
  log.write({ ...ENTRY, model, path: "/v1/models?key=sk-secret" });
  await log.close();
  const text = readFileSync(file, "utf8");
  expect(text).toMatch(/^[ -~]+\n$/);
  expect(text).not.toContain("sk-secret");
  expect(entriesIn(file)).toMatchObject([{ model: model.slice(0, 256), path: "/v1/models" }]);
});

test("after a rename, the log goes on in a new file without losing an entry", async () => {
  const file = join(folder, "rotated.log");
  const log = await AccessLog.open(file, options());
  log.write({ ...ENTRY, request_id: "before" });
  await vi.waitFor(() => expect(entriesIn(file)).toHaveLength(1));
  renameSync(file, `${file}.1`);
  log.write({ ...ENTRY, request_id: "meanwhile" });
  log.reopen();
  log.write({ ...ENTRY, request_id: "after" });
  await log.close();
  await vi.waitFor(() => expect(entriesIn(`${file}.1`)).toHaveLength(2));
  expect(entriesIn(file)).toMatchObject([{ request_id: "after" }]);
});

test("a file that cannot be opened is an error at the start", async () => {
  await expect(AccessLog.open(join(folder, "no", "such.log"), options())).rejects.toThrow("ENOENT");
});

test("a full disk is one warning, and the log works again when there is room", async () => {
  const { lines, time, ...rest } = options();
  const log = await AccessLog.open("/dev/full", { ...rest });
  for (let call = 0; call < 3; call += 1) log.write(ENTRY);
  await vi.waitFor(() => expect(lines).toHaveLength(1));
  expect(lines[0]).toContain("The access log loses entries: ENOSPC");
  for (let call = 0; call < 100; call += 1) {
    time.nowMs += 1000;
    log.write(ENTRY);
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(lines).toHaveLength(1);
  await log.close();
});

test("a folder that went away and came back costs the entries between, and says how many", async () => {
  const inner = join(folder, "mounted");
  const file = join(inner, "access.log");
  mkdirSync(inner);
  const { lines, time, ...rest } = options();
  const log = await AccessLog.open(file, { ...rest });
  rmSync(inner, { recursive: true });
  log.reopen();
  await vi.waitFor(() => expect(lines).toHaveLength(1));
  log.write(ENTRY);
  log.write(ENTRY);
  mkdirSync(inner);
  log.write(ENTRY);
  expect(lines).toHaveLength(1);
  time.nowMs += 5000;
  log.write({ ...ENTRY, request_id: "again" });
  await vi.waitFor(() => expect(lines).toHaveLength(2));
  expect(lines[1]).toBe("The access log is written again; 3 entries are missing");
  expect(entriesIn(file)).toMatchObject([{ request_id: "again" }]);
  await log.close();
});

test("a reader that stalls costs entries, not memory or time", async () => {
  const written: string[] = [];
  let release = () => {};
  const stalled = new Writable({
    decodeStrings: false,
    write: (chunk: string, _, done) => {
      written.push(chunk);
      release = done;
    },
  });
  const { lines, ...rest } = options();
  const log = AccessLog.to(stalled, { ...rest });
  for (let call = 0; call < 20_000; call += 1) log.write(ENTRY);
  expect(stalled.writableLength).toBeLessThanOrEqual(1024 * 1024);
  expect(lines).toEqual(["The access log loses entries: it is written too slowly"]);
  while (stalled.writableLength > 0) {
    release();
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(lines).toHaveLength(2);
  const missing = Number(/again; (\d+) entries/.exec(lines[1] ?? "")?.[1]);
  expect(written.length + missing).toBe(20_000);
  await log.close();
});
