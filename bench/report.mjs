/** Results as rows, as a table, and as the document. */

import { readFileSync } from "node:fs";
import { availableParallelism, cpus } from "node:os";
import { engineName } from "./engine.mjs";

/** Builds one row: with a rival, `ours` and `theirs` are operations per second. */
export function rowOf(scenario, result) {
  const [ours, theirs] = Array.isArray(result) ? result : [];
  const measured = Array.isArray(result)
    ? {
        unit: "1/s",
        ours: Math.round(ours.perSecond),
        theirs: Math.round(theirs.perSecond),
        ratio: rounded(ours.perSecond / theirs.perSecond),
        cpuRatio: rounded(ours.cpuUs / theirs.cpuUs),
        details: { ours: roundedAll(ours), theirs: roundedAll(theirs) },
      }
    : { ...roundedAll(result), details: {} };
  const marks = scenario.marks.map((mark) => {
    const value = measured[mark.of] ?? measured.details.ours[mark.of];
    const reached = mark.least === undefined ? value <= mark.most : value >= mark.least;
    return { ...mark, value, reached };
  });
  const row = { scenario: scenario.id, title: scenario.title, ...measured, marks };
  return { ...row, reached: marks.every(({ reached }) => reached), summary: summaryOf(row) };
}

/** Summarizes a row in one line. */
function summaryOf({ marks, growth, details }) {
  if (growth !== undefined) {
    return Object.entries(growth)
      .map(([what, value]) => `${what} ${value.toFixed(1)} us`)
      .join(", ");
  }
  const parts = marks.map(({ of, value, least, most, reached }) => {
    const bound = least === undefined ? `<= ${most}` : `>= ${least}`;
    return `${of} ${value} (${bound}${reached ? "" : ", MISSED"})`;
  });
  // Where local DynamoDB has more to do for us than for the other, it sets a bound to the ratio.
  const [ours, theirs] = [details.ours?.engineUs, details.theirs?.engineUs];
  if (ours !== undefined) parts.push(`CPU of local DynamoDB ${ours} / ${theirs} us`);
  const [oursAdd, theirsAdd] = [details.ours?.addedUs, details.theirs?.addedUs];
  if (oursAdd !== undefined) {
    parts.push(`CPU of the server ${details.ours.cpuUs} / ${details.theirs.cpuUs} us`);
    parts.push(`of it the limiter ${oursAdd} / ${theirsAdd} us`);
  }
  if (details.ours?.serverUs !== undefined) {
    parts.push(`CPU of the server ${details.ours.serverUs} / ${details.theirs.serverUs} us`);
  }
  return parts.join(", ");
}

export function table(rows) {
  const cells = rows.map((row) => [
    row.scenario,
    row.ours === undefined ? "" : String(row.ours),
    row.theirs === undefined ? "" : String(row.theirs),
    row.reached ? "yes" : "NO",
    row.summary,
  ]);
  const header = ["scenario", "ours 1/s", "theirs 1/s", "reached", "marks"];
  const widths = header.map((name, at) =>
    Math.max(name.length, ...cells.map((row) => row[at].length)),
  );
  const line = (row) =>
    row
      .map((cell, at) => cell.padEnd(widths[at]))
      .join("  ")
      .trimEnd();
  return [
    line(header),
    widths.map((width) => "-".repeat(width)).join("  "),
    ...cells.map(line),
  ].join("\n");
}

export function markdown(rows, { only, quick }) {
  const options = [only === undefined ? "" : `--only ${only}`, quick ? "--quick" : ""];
  const command = ["npm run bench --", ...options, "--markdown docs/benchmarks.md"];
  const duels = rows.filter((row) => row.ours !== undefined);
  const others = rows.filter((row) => row.ours === undefined);
  const behind = duels.filter((row) => row.ratio < 1);
  return `# Benchmarks

Written by \`${command.filter((part) => part !== "").join(" ")}\`. Numbers as they came, medians over
alternating rounds of us and them; what counts is the ratio, because both had the same machine.

- machine: ${availableParallelism()} cores, ${cpus()[0]?.model.trim() ?? "unknown"}, ${process.platform} ${process.arch}
- Node.js ${process.versions.node}
- ${versions().join("\n- ")}

## Against others

Operations per second. CPU is time of this process per operation (in \`http-*\` of the server, the
limiter's part in brackets), store that of local DynamoDB, bytes are what this process allocates;
all are ours / theirs.

| scenario | what | ours | theirs | ratio | mark | CPU µs | store µs | bytes | p50 µs | p99 µs |
|---|---|---|---|---|---|---|---|---|---|---|
${duels.map(duelLine).join("\n")}

${behindText(behind)}

## Alone

| scenario | what | measured | mark reached |
|---|---|---|---|
${others.map((row) => `| ${row.scenario} | ${row.title} | ${row.summary} | ${row.marks.length === 0 ? "" : row.reached ? "yes" : "**no**"} |`).join("\n")}

## How it is measured

Each contender is warmed up, then both take turns, and each begins every second round. Latencies and
allocations are taken in passes of their own, since looking costs time as well: with 64 in flight, a
latency is mostly the wait for the other 63. \`calls\`, \`WCU\` and \`RCU\` are what the store reports.
This process and the servers of \`http-*\` have been through six collections of the whole heap, as
every process has that runs for long: in Node.js 20 they make \`process.nextTick\`, which sockets and
streams use, several times slower for good.

Local DynamoDB runs on the same machine and takes its share of it, so ratios of the DynamoDB
scenarios are lower than a remote table would show; \`ddb-null\` leaves the store out. The store
writes one item at a time: where operations per second and its microseconds for each make up a
second, it is the store that takes no more. It has one thread, for both sides: two fight for a lock,
and make a third fewer writes than one.

\`ddb-rlf\`, \`ddb-raw\` and \`ddb-casc\` do not compare like with like in this: the others write a
small item that is in no index, and ours is larger and in three, so that the store takes longer for
ours. Those rows show what a user of local DynamoDB gets. In
\`ddb-raw-same\` and \`ddb-casc-same\` the bare SDK makes the very write that we make, by the same
expressions, to copies of our buckets in the same table with the same index keys: the store spends
the same on both, and what is left is the client. Their marks: a client that also decides must not
be slower than the call alone (1), and must take less of the processor (0.6). Two writes of ours
against one transaction may be a little slower (0.85), because a transaction is one request.

Ratios of \`ddb-rlf\`, \`ddb-raw\` and \`ddb-casc\` depend on the release of local DynamoDB. The bench
builds release 3.2.0 where cargo is installed. Release 1.2.1, which the npm registry has and which
earlier reports were made with, takes 500 µs instead of 290 for a write of ours: \`ddb-raw\` was 1.1
on it and 1.8 on the new one, on one machine and with the same code. Reports from before 2026-11-17
gave the store two threads.

What the rivals do is not the same: \`rate-limiter-flexible\` counts points in fixed windows, one
limit at a time, and can neither adjust nor refund all of a call. The bare calls decide nothing.
Ours counts usage in all of these numbers, which cannot be switched off: what every acquire consumed
is part of the same write, and is in the snapshots of the hour later. Listening to \`events\` is
off; it costs a call of the listener per event.

The bare statement of \`sql-raw\` is run with \`all\`. With \`get\` it would be faster, because a
statement that is left after its first row does not bring SQLite's log to the file: the log would
grow for as long as the program runs.

Each contender of \`pg-*\` is as it comes: ours commits asynchronously and has four connections,
\`RateLimiterPostgres\` waits for the disk, has the ten connections of pg, and prepares its statement
by name, which ours does not, for poolers. \`sameCommit\` and \`timesRivalSame\` are against the same
rival without waiting for the disk. In \`pg-hot\` each process has four connections; the bare UPDATE
is prepared by name and counts one number, ours decides, refills and counts usage.
The mark of 4 was set where 16 processes made 1,650 bare UPDATEs per second; on this machine they
make about 11,000, and ours is bound by the processors that all 17 processes share.

The table of the DynamoDB scenarios has its stream switched off, for both sides: local DynamoDB,
unlike the real one, becomes slower with every record of a stream.

In \`http-*\` there are eight server processes of each contender and two without a limiter, because
how a process was compiled and laid out holds for its life. All take turns in short rounds, in
alternating order; a figure is the mean over processes, each the median over its rounds. The client
writes prepared bytes to 32 connections and costs a seventh of what an Express server does for a
request, so that the server sets the pace. Reports from before 2026-11-17 used a client that took as
much of the processor as the Fastify servers did.

\`llm-gateway\` has three processes of each proxy, which take turns in the same way. Its client and
its upstream share the cores with the proxy, so the ratio of throughputs is nearer to 1 than that of
the CPU of the two proxies.

\`npm run bench -- --help\` lists the scenarios; \`--quick\` looks instead of measuring.
`;
}

function duelLine({ scenario, title, ours, theirs, ratio, marks, details }) {
  const bound = marks
    .map(({ of, least, most, value, reached }) => {
      const asked = least === undefined ? `<= ${most}` : `>= ${least}`;
      const named = of === "ratio" ? asked : `${of} ${value} ${asked}`;
      return reached ? named : `**missed** ${named}`;
    })
    .join("; ");
  const pair = (field) =>
    details.ours[field] === undefined
      ? ""
      : `${grouped(details.ours[field])} / ${grouped(details.theirs[field])}`;
  return `| ${scenario} | ${title}${costsOf(details.ours)} | ${grouped(ours)} | ${grouped(theirs)} | ${ratio} | ${bound} | ${pair("cpuUs")}${addedText(details)} | ${pair("engineUs")} | ${pair("bytes")} | ${pair("p50Us")} | ${pair("p99Us")} |`;
}

/** Formats the CPU time that a limiter adds to its server. */
function addedText({ ours, theirs }) {
  return ours.addedUs === undefined ? "" : ` (${ours.addedUs} / ${theirs.addedUs})`;
}

/** Formats the costs of an operation in the store, as far as they were measured. */
function costsOf({ callsPerOp, wcuPerOp, rcuPerOp }) {
  const costs = Object.entries({ calls: callsPerOp, WCU: wcuPerOp, RCU: rcuPerOp })
    .filter(([, count]) => count !== undefined)
    .map(([unit, count]) => `${count} ${unit}`);
  return costs.length === 0 ? "" : `; ${costs.join(", ")} each`;
}

function grouped(value) {
  return value?.toLocaleString("en-US") ?? "";
}

function behindText(rows) {
  if (rows.length === 0) return "No contender was ahead of us in this run.";
  const list = rows.map(({ scenario, ratio }) => `\`${scenario}\` (${ratio})`);
  // One to a line, because documents have lines of at most 100 columns.
  return `Ahead of us:\n${list.join(",\n")}.`;
}

function versions() {
  const version = (path) =>
    JSON.parse(readFileSync(new URL(path, import.meta.url), "utf8")).version;
  return [
    `zae-limiter ${version("../package.json")}`,
    `rate-limiter-flexible ${version("./node_modules/rate-limiter-flexible/package.json")}`,
    `better-sqlite3 ${version("./node_modules/better-sqlite3/package.json")}`,
    `@aws-sdk/client-dynamodb ${version("../node_modules/@aws-sdk/client-dynamodb/package.json")}`,
    engineName(),
  ];
}

function roundedAll(result) {
  return Object.fromEntries(
    Object.entries(result).map(([name, value]) => [
      name,
      typeof value === "number" ? rounded(value) : value,
    ]),
  );
}

function rounded(value) {
  return value >= 100 ? Math.round(value) : Number(value.toPrecision(3));
}
