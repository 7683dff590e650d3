/**
 * The kinds of options a deployment has. A kind knows how a value is checked, with a sentence for
 * what is wrong, and how the parameter of the template is restricted.
 */

import { WINDOW_TYPES } from "@zae-limiter/limiter/core/windows.ts";
import { checkOptions, show } from "@zae-limiter/limiter/domain/check.ts";
import { ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { type OptionCheck, whole as wholeNumber } from "@zae-limiter/limiter/domain/options.ts";
import type { CfnParameter } from "../template/cfn.ts";

/** AWS allows 50 on a stack, and six are ours. */
const TAGS_MAX = 44;
const TAG_KEY_LENGTH_MAX = 128;
const TAG_VALUE_LENGTH_MAX = 256;
const ROLE_ARN_PATTERN = /^arn:(aws|aws-cn|aws-us-gov):iam::[0-9]{12}:role\/[^\s]+$/;
const TOPIC_ARN_PATTERN = /^arn:[^:\s]+:sns:[^:\s]+:[0-9]{12}:[^\s]+$/;
const KEY_ARN_PATTERN = /^arn:[^:\s]+:kms:[^:\s]+:[0-9]{12}:key\/[^\s]+$/;
const EMAIL_PATTERN = /^[^@\s]+@[^@\s]+$/;

/** The terms CloudWatch keeps logs for. */
const LOG_RETENTION_DAYS: readonly number[] = [
  1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288,
  3653,
];

/** The common part of all options of a kind. */
export interface OptionKind {
  readonly type: "number" | "boolean" | "text" | "tags";
  readonly check: OptionCheck;
  /** The values that the parameter of the template allows. */
  readonly allowed: Partial<CfnParameter>;
  /** The least and the greatest number. */
  readonly range?: readonly [number, number];
  readonly choices?: readonly (string | number)[];
}

/** Takes whole numbers within bounds. */
export function whole(min: number, max: number) {
  return {
    type: "number",
    check: wholeNumber(min, max),
    allowed: { MinValue: min, MaxValue: max },
    range: [min, max],
  } as const satisfies OptionKind;
}

/** A number of days, for which CloudFormation has only texts because it may also be absent. */
export const RECOVERY_DAYS = {
  ...whole(1, 35),
  allowed: { AllowedPattern: "([1-9]|[12][0-9]|3[0-5])?" },
} as const satisfies OptionKind;

/** True or false, and nothing that merely counts as one of them. */
export const FLAG = {
  type: "boolean",
  check: (field, value) => {
    if (typeof value === "boolean") return;
    throw new ValidationError(field, value, `expected true or false, got ${show(value)}`);
  },
  allowed: { AllowedValues: ["true", "false"] },
} as const satisfies OptionKind;

/** Text that is not empty. */
export const TEXT = { type: "text", check: checkText, allowed: {} } as const satisfies OptionKind;

function checkText(field: string, value: unknown): asserts value is string {
  if (typeof value === "string" && value !== "") return;
  throw new ValidationError(field, value, `expected text that is not empty, got ${show(value)}`);
}

const WINDOW_PATTERN = `(${WINDOW_TYPES.join("|")})`;

/** Window types, separated by commas. */
export const WINDOWS = {
  type: "text",
  check: (field: string, value: unknown) => {
    checkText(field, value);
    const windows = value.split(",");
    const known = windows.every((window) => WINDOW_TYPES.some((type) => type === window));
    if (known && new Set(windows).size === windows.length) return;
    const form = `some of ${WINDOW_TYPES.join(", ")}, each once, separated by commas`;
    throw new ValidationError(field, value, `expected ${form}, got ${show(value)}`);
  },
  allowed: { AllowedPattern: `${WINDOW_PATTERN}(,${WINDOW_PATTERN})*` },
} as const satisfies OptionKind;

/** One of the terms of CloudWatch. */
export const LOG_RETENTION = {
  type: "number",
  check: (field, value) => {
    if (LOG_RETENTION_DAYS.some((days) => days === value)) return;
    const terms = LOG_RETENTION_DAYS.join(", ");
    throw new ValidationError(field, value, `expected one of ${terms}, got ${show(value)}`);
  },
  allowed: { AllowedValues: LOG_RETENTION_DAYS },
  choices: LOG_RETENTION_DAYS,
} as const satisfies OptionKind;

/** Takes texts with exactly one `{}`. */
export function nameFormat(lengthMax: number) {
  return {
    ...TEXT,
    check: (field: string, value: unknown) => {
      checkText(field, value);
      if (value.split("{}").length !== 2) {
        throw new ValidationError(field, value, `expected exactly one {}, got ${show(value)}`);
      }
      if (value.length > lengthMax) {
        const reason = `must be at most ${lengthMax} characters long, got ${value.length}`;
        throw new ValidationError(field, value, reason);
      }
    },
  } as const satisfies OptionKind;
}

/** Takes texts of a form; the parameter may also be empty: then the option is not set. */
function matching(pattern: RegExp, form: string, allowedPattern: string) {
  return {
    type: "text",
    check: (field, value) => {
      if (typeof value === "string" && pattern.test(value)) return;
      throw new ValidationError(field, value, `expected ${form}, got ${show(value)}`);
    },
    allowed: { AllowedPattern: allowedPattern },
  } as const satisfies OptionKind;
}

/** The ARN of a role in any partition. */
export const ROLE_ARN = matching(
  ROLE_ARN_PATTERN,
  "the ARN of a role, arn:aws:iam::<12 digits>:role/<name>",
  "(arn:(aws|aws-cn|aws-us-gov):iam::[0-9]{12}:role/.+)?",
);

/** The ARN of a topic in any partition. */
export const TOPIC_ARN = matching(
  TOPIC_ARN_PATTERN,
  "the ARN of a topic, arn:aws:sns:<region>:<12 digits>:<name>",
  "(arn:[^:]+:sns:.+)?",
);

/** The ARN of a key in any partition. */
export const KEY_ARN = matching(
  KEY_ARN_PATTERN,
  "the ARN of a key, arn:aws:kms:<region>:<12 digits>:key/<id>",
  "(arn:[^:]+:kms:[^:]+:[0-9]{12}:key/.+)?",
);

export const EMAIL = matching(EMAIL_PATTERN, "an address like ops@example.com", "([^@ ]+@[^@ ]+)?");

/** Takes one of a few words. */
export function oneOf<Word extends string>(...words: readonly Word[]) {
  return {
    type: "text",
    check: (field, value) => {
      if (words.some((word) => word === value)) return;
      throw new ValidationError(field, value, `expected ${words.join(" or ")}, got ${show(value)}`);
    },
    allowed: { AllowedValues: words },
    choices: words,
  } as const satisfies OptionKind;
}

/** The tags of the user, which are added to those of the library. */
export const TAGS = { type: "tags", check: checkTags, allowed: {} } as const satisfies OptionKind;

function checkTags(field: string, value: unknown): void {
  checkOptions(field, value, "an object of texts");
  const tags = Object.entries(value as object);
  if (tags.length > TAGS_MAX) {
    throw new ValidationError(field, tags.length, `at most ${TAGS_MAX}, got ${tags.length}`);
  }
  for (const [key, text] of tags) checkTag(field, key, text);
}

function checkTag(field: string, key: string, value: unknown): void {
  if (key === "" || [...key].length > TAG_KEY_LENGTH_MAX) {
    const reason = `a key must have 1 to ${TAG_KEY_LENGTH_MAX} characters, got ${show(key)}`;
    throw new ValidationError(field, key, reason);
  }
  if (key.startsWith("aws:")) {
    throw new ValidationError(field, key, `a key must not start with "aws:", got ${show(key)}`);
  }
  if (typeof value !== "string" || [...value].length > TAG_VALUE_LENGTH_MAX) {
    const reason = `the value of ${show(key)} must be text of at most ${TAG_VALUE_LENGTH_MAX} characters`;
    throw new ValidationError(field, value, `${reason}, got ${show(value)}`);
  }
}
