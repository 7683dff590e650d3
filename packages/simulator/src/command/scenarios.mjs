/** Runs scenarios and prints what they cost. */

import Table from "cli-table3";

const COLUMNS = [
  ["scenario", ({ name }) => name],
  ["offered", ({ offered }) => number(offered)],
  ["admitted", ({ admitted }) => number(admitted)],
  ["of the max", ({ admittedShare }) => percent(admittedShare)],
  ["calls/acquire", ({ callsPerAcquire }) => callsPerAcquire.toFixed(3)],
  ["WCU/acquire", ({ writeUnitsPerAcquire }) => writeUnitsPerAcquire.toFixed(3)],
  ["RCU/acquire", ({ readUnitsPerAcquire }) => readUnitsPerAcquire.toFixed(3)],
  ["throttled", ({ throttledShare }) => percent(throttledShare)],
  ["after 10 s", ({ settled }) => percent(settled.throttledShare)],
  ["unavailable", ({ unavailable }) => number(unavailable)],
  ["refused wrongly", ({ wrongRefusals }) => number(wrongRefusals)],
  ["p50 ms", ({ latencyMs }) => latencyMs.p50.toFixed(1)],
  ["p99 ms", ({ latencyMs }) => latencyMs.p99.toFixed(1)],
  ["$/million", ({ dollarsPerMillion }) => dollarsPerMillion.toFixed(3)],
  ["shards", ({ shards }) => String(shards)],
];

export async function runScenarios(simulator, { scenario, seed, seconds, json }, isStopped) {
  const { SCENARIOS, runScenario } = simulator;
  const names = Object.keys(SCENARIOS);
  if (scenario !== "all" && !names.includes(scenario)) {
    console.error(`--scenario: expected all, ${names.join(", ")}, got "${scenario}"`);
    return 2;
  }
  const reports = [];
  for (const name of scenario === "all" ? names : [scenario]) {
    if (isStopped()) break;
    const { title, parameters } = SCENARIOS[name];
    console.error(`${name}: ${title}\n  ${JSON.stringify(parameters)}`);
    const startedAt = performance.now();
    const onSecond = ({ second, admitted, unavailable, calls, throttled, shards }) => {
      const ended = `${admitted} admitted, ${unavailable} unavailable`;
      const row = `${ended}, ${calls} calls, ${throttled} throttled, ${shards} shards`;
      console.error(`  ${String(second).padStart(3)} s: ${row}`);
    };
    const report = await runScenario(SCENARIOS[name], { seed, seconds, onSecond, isStopped });
    const wallSeconds = (performance.now() - startedAt) / 1000;
    console.error(`  ${wallSeconds.toFixed(1)} s of real time, ${number(report.events)} events`);
    if (report.violation !== undefined) console.error(`  BROKE A RULE: ${report.violation}`);
    reports.push(report);
  }
  console.log(json ? JSON.stringify(reports, null, 2) : tableOf(reports));
  return reports.every(({ violation }) => violation === undefined) ? 0 : 1;
}

function tableOf(reports) {
  const table = new Table({ head: COLUMNS.map(([name]) => name), style: { head: [], border: [] } });
  for (const report of reports) table.push(COLUMNS.map(([, show]) => show(report)));
  return table.toString();
}

function number(value) {
  return value.toLocaleString("en-US");
}

function percent(part) {
  return `${(100 * part).toFixed(2)} %`;
}
