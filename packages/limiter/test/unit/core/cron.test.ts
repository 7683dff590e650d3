import { hasEdges } from "@zae-limiter/limiter/core/calendar.ts";
import { type Cron, matchesDay, readCron } from "@zae-limiter/limiter/core/cron.ts";
import { describe, expect, test } from "vitest";

function cronOf(text: string): Cron {
  const read = readCron(text);
  if ("problem" in read) throw new Error(read.problem);
  return read;
}

describe("expressions", () => {
  test.each([
    ["0 0 1 * *", "0 0 1 * *"],
    [" 00  06 * jan-jun mon-fri ", "0 6 * 1-6 1-5"],
    ["0 0 * * SUN", "0 0 * * 7"],
    ["0 0 * * 0", "0 0 * * 7"],
    ["0 0 * * SAT,SUN", "0 0 * * 6,7"],
    ["0 0 * * SUN-THU", "0 0 * * 0-4"],
    ["*/15 0-6 1,15 JAN-JUN *", "*/15 0-6 1,15 1-6 *"],
    ["0 0 * * SUN/2", "0 0 * * 0/2"],
  ])("%o has the canonical form %o", (text, canonical) => {
    expect(cronOf(text).text).toBe(canonical);
    expect(cronOf(canonical)).toEqual(cronOf(text));
  });

  test.each([
    ["0 0 * *", "expected five fields"],
    ["0 0 0 * * *", "expected five fields"],
    ["0 0 L * *", "L, W and # are not supported"],
    ["0 0 15W * *", "L, W and # are not supported"],
    ["0 0 * * FRI#2", "L, W and # are not supported"],
    ["60 0 * * *", "the minute must be from 0 to 59"],
    ["0 24 * * *", "the hour must be from 0 to 23"],
    ["0 0 0 * *", "the day of the month must be from 1 to 31"],
    ["0 0 * 13 *", "the month must be from 1 to 12"],
    ["0 0 * * 8", "the day of the week must be from 0 to 7"],
    ["0 0 * * SAT-SUN", "the day of the week must be from 0 to 7"],
    ["0 0 * * wedding", "the day of the week must be from 0 to 7"],
    ["*/0 * * * *", "the minute must be from 0 to 59"],
    ["1- * * * *", "the minute must be from 0 to 59"],
    [", * * * *", "the minute must be from 0 to 59"],
  ])("%o is refused with what is wrong", (text, problem) => {
    expect(readCron(text)).toEqual({ problem: expect.stringContaining(problem) });
  });

  test("a day matches by one of its fields, or by both where one begins with a star", () => {
    const friday13 = Date.parse("2026-11-13");
    const friday6 = Date.parse("2026-11-06");
    expect(matchesDay(cronOf("0 0 13 * FRI"), friday13)).toBe(true);
    expect(matchesDay(cronOf("0 0 13 * FRI"), friday6)).toBe(true);
    expect(matchesDay(cronOf("0 0 13 * FRI"), Date.parse("2026-11-12"))).toBe(false);
    expect(matchesDay(cronOf("0 0 */2 * FRI"), friday6)).toBe(false);
    expect(matchesDay(cronOf("0 0 */2 * FRI"), friday13)).toBe(true);
  });

  test("an expression that never begins to match has no edges", () => {
    expect(hasEdges(cronOf("* * * * *"))).toBe(false);
    expect(hasEdges(cronOf("0 0 30 2 *"))).toBe(false);
    expect(hasEdges(cronOf("0 0 29 2 *"))).toBe(true);
    expect(hasEdges(cronOf("* * * * 1"))).toBe(true);
  });
});
