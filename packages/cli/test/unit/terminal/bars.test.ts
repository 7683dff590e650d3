/** Bars of limits at every width that a terminal may have. */

import { bars, statusJson } from "@zae-limiter/cli/terminal/bars.ts";
import { COLOURED, PLAIN } from "@zae-limiter/cli/terminal/palette.ts";
import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { type LimitStatus, statusOf } from "@zae-limiter/limiter/domain/limit-status.ts";
import { describe, expect, test } from "vitest";

const RPM = Limit.parse("rpm:100/min");
const TPM = Limit.parse("tpm:5000/min");

function status(limit: Limit, availableMilli: number): LimitStatus {
  const check = { entityId: "key-1", resource: "gpt-4", limit, requested: 0 };
  return statusOf(check, availableMilli, limit.rate);
}

function linesAt(columns: number, ...statuses: LimitStatus[]): string[] {
  return bars(statuses, { palette: PLAIN, columns }).split("\n").slice(1);
}

describe("bars", () => {
  test("numbers are whole at every width, and no line is wider than the terminal", () => {
    for (let columns = 28; columns <= 200; columns += 1) {
      const lines = linesAt(columns, status(RPM, 2000), status(TPM, 631_000));
      expect(lines[0]).toContain(" 2 of 100");
      expect(lines[1]).toContain(" 631 of 5,000");
      expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(columns);
    }
  });

  test("a limit in money has dollars, in a layout that parts of cents do not move", () => {
    const budget = Limit.parse("usd:$500/hour");
    for (let columns = 40; columns <= 200; columns += 1) {
      const [spent = ""] = linesAt(columns, status(budget, 499_998_712_000));
      const [full = ""] = linesAt(columns, status(budget, 500_000_000_000));
      expect(spent).toContain(" $499.998712 of $500.00");
      expect(spent.indexOf(" of ")).toBe(full.indexOf(" of "));
      expect(spent.length).toBeLessThanOrEqual(columns);
    }
    expect(linesAt(200, status(budget, 0))[0]).toContain("+$500.00/hour");
    expect(statusJson(status(budget, 1_500_000_000)).available).toBe(1_500_000);
  });

  test("numbers that do not fit next to long names are below them, whole", () => {
    const requests = Limit.parse("requests_per_minute:100");
    const tokens = Limit.parse("tokens_per_minute:1000000");
    for (let columns = 28; columns <= 200; columns += 1) {
      const lines = linesAt(columns, status(requests, 2000), status(tokens, 1_000_000_000));
      const text = lines.join("\n");
      expect(text).toMatch(/requests_per_minute[^a-z]* 2 of 100\b/);
      expect(text).toMatch(/tokens_per_minute[^a-z]* 1,000,000 of 1,000,000\b/);
      expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(columns);
    }
  });

  test("a debt that takes hours is whole at every width: words are left out, never cut", () => {
    const hourly = Limit.parse("tpm:100000/hour");
    const tails = new Set<string | undefined>();
    for (let columns = 28; columns <= 200; columns += 1) {
      const [line = ""] = linesAt(columns, status(hourly, -49_921_000));
      expect(line.length).toBeLessThanOrEqual(columns);
      tails.add(line.split("-49,921 of 100,000")[1]);
    }
    expect([...tails]).toEqual([
      "",
      "  debt",
      "  debt, full in 1 h 29 min",
      "  +100,000/hour, debt, full in 1 h 29 min",
    ]);
  });

  test("a debt is called one in a narrow terminal too, in its empty bar", () => {
    expect(linesAt(28, status(TPM, -496_000))).toEqual(["  tpm  debt    -496 of 5,000"]);
    expect(linesAt(40, status(TPM, -496_000))[0]).toContain("debt░░");
  });

  test("a narrow terminal keeps the bar and loses the words, a wide one has wider bars", () => {
    const cells = (columns: number) =>
      linesAt(columns, status(TPM, 631_000))[0]?.match(/[█░]/g)?.length;
    expect(linesAt(28, status(TPM, 631_000))).toEqual(["  tpm  █░░░     631 of 5,000"]);
    expect(linesAt(60, status(TPM, 631_000))[0]).toMatch(/631 of 5,000 {2}full in 53 s$/);
    expect(linesAt(80, status(TPM, 631_000))[0]).toMatch(/ {2}\+5,000\/min, full in 53 s$/);
    expect(cells(120)).toBeGreaterThan((cells(80) ?? 0) + 30);
    expect(linesAt(20, status(TPM, 631_000))).toEqual(["  tpm", "       631 of 5,000"]);
  });

  test("a bar keeps its place while balances change, into debt and back", () => {
    const places = [5_000_000, 1_234_000, 999_000, 9000, 0, -1000, -4_999_000].map((milli) =>
      linesAt(80, status(TPM, milli))[0]
        ?.replace(/[█░]+/, (bar) => `<${bar.length}>`)
        .slice(0, 28),
    );
    expect(new Set(places.map((line) => line?.slice(0, 11))).size).toBe(1);
    const ends = [5_000_000, 9000, -4_999_000].map((milli) =>
      linesAt(80, status(TPM, milli))[0]?.indexOf(" of "),
    );
    expect(new Set(ends).size).toBe(1);
  });

  test("an empty bucket is red, and a debt is called one", () => {
    const look = { palette: COLOURED, columns: 80 };
    expect(bars([status(RPM, 0)], look)).toContain("\u001b[31m░░░");
    expect(bars([status(RPM, 1000)], look)).not.toContain("\u001b[31m");
    expect(linesAt(80, status(RPM, -600_000))[0]).toMatch(
      /-600 of 100 {2}\+100\/min, debt, full in 7 min$/,
    );
    expect(linesAt(28, status(RPM, -600_000))[0]).toContain("-600 of 100");
  });

  test("slots show how many are in flight, and no time: a call ends when it ends", () => {
    const slots = Limit.parse("parallel:20 concurrent");
    expect(linesAt(80, status(slots, 3000))[0]).toMatch(/3 of 20 {2}20 concurrent, 17 in flight$/);
    expect(linesAt(80, status(slots, -5000))[0]).toMatch(/-5 of 20 .* 25 in flight$/);
    expect(linesAt(80, status(slots, 20_000))[0]).toMatch(/20 of 20 {2}20 concurrent$/);
    expect(statusJson(status(slots, 3000))).toMatchObject({ available: 3, estimated: true });
    expect(statusJson(status(RPM, 3000))).not.toHaveProperty("estimated");
  });

  test("the time until a bucket is full counts down between two tokens", () => {
    const hourly = Limit.parse("rph:1/hour");
    const times = [0, 250, 500, 999].map((milli) => statusJson(status(hourly, milli)));
    expect(times.map(({ full_in_seconds }) => full_in_seconds)).toEqual([3600, 2700, 1800, 3.6]);
    expect(linesAt(80, status(hourly, 250))[0]).toMatch(/0 of 1 .*full in 45 min$/);
  });
});
