import {
  InvalidIdentifierError,
  InvalidNameError,
  ValidationError,
} from "@zae-limiter/limiter/domain/errors/errors.ts";
import {
  checkConfigResource,
  checkEntityId,
  checkLimitName,
  checkNamespace,
  checkParentId,
  checkPrincipal,
  checkResource,
  checkStackName,
} from "@zae-limiter/limiter/domain/names.ts";
import { property } from "@zae-limiter/test-support/property.ts";
import { refusal } from "@zae-limiter/test-support/refusal.ts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";

const UUID = "6a2f41a3-c54c-4f2b-8d0e-1f3f3a0b9c11";

describe("limit names", () => {
  test.each(["rpm", "tokens_per_minute", "rate-limit", "gpt-3.5", "WCU", "a"])(
    "a limit may be called %o (A026)",
    (name) => {
      expect(checkLimitName(name)).toBe(name);
    },
  );

  test.each([
    ["rpm#evil", "#"],
    ["", "empty"],
    ["a".repeat(100), "length"],
    ["123rpm", "letter"],
    ["rpm@test", "letter"],
    ["rpm:test", "letter"],
    ["rpm/test", "letter"],
    ["rpm test", "letter"],
    ["wcu", "reserved"],
    ["__proto__", "letter"],
  ])("a limit name like %o is refused, and the error says why (A027)", (name, reason) => {
    const error = refusal(() => checkLimitName(name));
    expect(error).toBeInstanceOf(InvalidNameError);
    expect(error).toMatchObject({ field: "name", code: "ZAEL_INVALID_NAME" });
    expect(error.reason).toContain(reason);
  });

  test.each(["constructor", "toString", "hasOwnProperty", "valueOf"])(
    "the name %o is harmless for a limit",
    (name) => {
      expect(checkLimitName(name)).toBe(name);
    },
  );
});

describe("resources", () => {
  test.each([
    "api",
    "gpt-3.5-turbo",
    "openai/gpt-4",
    "anthropic/claude-3/opus",
    "a/b/c/d",
    "openai/",
    "anthropic.claude-3-5-sonnet-20241022-v2:0",
    "llama3.1:8b",
    "deepseek/deepseek-r1:free",
    "ft:gpt-4o-mini-2024-07-18:my-org::AbC123",
    "@cf/meta/llama-3.1-8b-instruct",
    "claude-3-5-sonnet@20240620",
    "01-ai/yi-34b",
    "123",
    "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-3-7-sonnet-v1:0",
    "a".repeat(256),
  ])("a resource may be called %o (A028)", (name) => {
    expect(checkResource(name)).toBe(name);
    expect(checkConfigResource(name)).toBe(name);
  });

  test.each([
    ["/gpt-4", "letter"],
    ["openai#gpt-4", "#"],
    ["", "empty"],
    ["a".repeat(257), "length"],
    [":8b", "letter"],
    ["gpt 4", "letter"],
    ["_default_", "letter"],
  ])("a resource like %o is refused, and the error says why (A029)", (name, reason) => {
    const error = refusal(() => checkResource(name));
    expect(error).toBeInstanceOf(InvalidNameError);
    expect(error.field).toBe("resource");
    expect(error.reason).toContain(reason);
  });

  test("only stored limits of an entity may be for _default_, and wcu is a legal resource", () => {
    expect(checkConfigResource("_default_")).toBe("_default_");
    expect(checkResource("wcu")).toBe("wcu");
    expect(() => checkConfigResource("_other_")).toThrow(InvalidNameError);
  });
});

describe("ids", () => {
  test.each([UUID, "sk-proj-abc123_xyz", "user@example.com", "0", "a".repeat(256)])(
    "an entity may have the id %o (A030)",
    (id) => {
      expect(checkEntityId(id)).toBe(id);
      expect(checkParentId(id)).toBe(id);
      expect(checkPrincipal(id)).toBe(id);
    },
  );

  test.each([
    ["user#123", "#"],
    ["", "empty"],
    ["a".repeat(300), "length"],
    ["a".repeat(257), "length"],
    ["_user123", "letter"],
    ["a b", "letter"],
  ])("an id like %o is refused, and the error says why (A031)", (id, reason) => {
    for (const [check, field] of [
      [checkEntityId, "entity_id"],
      [checkParentId, "parent_id"],
      [checkPrincipal, "principal"],
    ] as const) {
      const error = refusal(() => check(id));
      expect(error).toBeInstanceOf(InvalidIdentifierError);
      expect(error).toMatchObject({ field, code: "ZAEL_INVALID_IDENTIFIER" });
      expect(error.reason).toContain(reason);
    }
  });

  test("an ARN is a principal as it is, but no entity", () => {
    const arn = "arn:aws:sts::123456789012:assumed-role/deployer/session+1";
    expect(checkPrincipal(arn)).toBe(arn);
    expect(() => checkEntityId(arn)).toThrow(InvalidIdentifierError);
  });
});

test("a newline at the end is not overlooked (A032)", () => {
  const checks = [
    checkEntityId,
    checkParentId,
    checkPrincipal,
    checkLimitName,
    checkResource,
    checkStackName,
    checkNamespace,
  ];
  for (const check of checks) {
    expect(check("abc")).toBe("abc");
    expect(() => check("abc\n")).toThrow(ValidationError);
  }
});

describe("stack names", () => {
  const longest = "a".repeat(55);
  test.each([
    "limiter",
    "MyApp",
    "My-App-123",
    "my--app",
    "myapp-",
    "abc",
    longest,
    "ZAEL-limiter",
  ])("a stack name like %o is accepted, unchanged (A034)", (name) => {
    expect(checkStackName(name)).toBe(name);
  });

  test.each([
    ["", ["empty"]],
    ["rate_limits", ["underscore", "hyphen"]],
    ["my.app", ["period"]],
    ["my app", ["space", "hyphen"]],
    ["123app", ["start with a letter"]],
    ["-app", ["start with a letter"]],
    ["a", ["Too short", "3 characters"]],
    ["ab", ["Too short", "3 characters"]],
    ["a".repeat(56), ["Too long", "55 character"]],
    ["café", ["letters, digits and hyphens"]],
    ["my/app", ["letters, digits and hyphens"]],
    ["my:app", ["letters, digits and hyphens"]],
    ["my\tapp", ["letters, digits and hyphens"]],
    ["my\napp", ["letters, digits and hyphens"]],
  ])("a stack name like %o is refused, and the error says why (A035)", (name, words) => {
    const error = refusal(() => checkStackName(name));
    expect(error.field).toBe("name");
    for (const word of words) expect(error.reason).toContain(word);
  });
});

describe("namespaces", () => {
  test.each(["default", "tenant-a", "Mandant 7", "东京/ä#1", "__", "toString"])(
    "a namespace may be called %o",
    (name) => {
      expect(checkNamespace(name)).toBe(name);
    },
  );

  test.each([
    ["_", "reserved"],
    ["", "empty"],
    ["a\u0000b", "control characters"],
    ["a\u007f", "control characters"],
    ["a".repeat(300), "length"],
    ["half a \ud83d smiley", "half of a surrogate pair"],
  ])("a namespace like %o is refused, and the error says why", (name, reason) => {
    expect(refusal(() => checkNamespace(name))).toMatchObject({ field: "namespace" });
    expect(refusal(() => checkNamespace(name)).reason).toContain(reason);
  });

  test("the longest of four-byte characters still fits the sort key of its record", () => {
    const accepted = (length: number) => {
      try {
        return checkNamespace("😀".repeat(length)) !== "";
      } catch {
        return false;
      }
    };
    let longest = 1;
    while (accepted(longest + 1)) longest += 1;
    expect(longest).toBeGreaterThan(200);
    expect(Buffer.byteLength(`#NAMESPACE#${"😀".repeat(longest)}`)).toBeLessThanOrEqual(1024);
  });
});

describe("what is no text", () => {
  const checks = { checkEntityId, checkLimitName, checkResource, checkStackName, checkNamespace };
  test.each(Object.entries(checks))("the error of %s says what came", (_, check) => {
    for (const [value, shown] of [
      [undefined, "undefined"],
      [null, "null"],
      [5, "5"],
      [["a"], "an array"],
      [new String("abc"), "an object"],
    ] as const) {
      expect(refusal(() => check(value)).reason).toBe(`expected text, got ${shown}`);
    }
  });

  test("length is counted in characters, not in code units", () => {
    // 64 smileys are 128 code units: refused for what they are, not for their length.
    expect(refusal(() => checkLimitName("😀".repeat(64))).reason).toContain("letter");
    expect(refusal(() => checkLimitName("😀".repeat(65))).reason).toContain("length");
  });
});

describe("every text", () => {
  /** The rules once more, letter by letter, with no regular expression in sight. */
  const LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  const DIGITS = "0123456789";
  const allowed = (text: string, first: string, rest: string, most: number) => {
    const characters = [...text];
    return (
      characters.length >= 1 &&
      characters.length <= most &&
      first.includes(characters[0] as string) &&
      characters.every((character) => rest.includes(character))
    );
  };
  const isId = (text: string) => allowed(text, LETTERS + DIGITS, `${LETTERS}${DIGITS}_.-:@`, 256);
  const isLimitName = (text: string) =>
    text !== "wcu" && allowed(text, LETTERS, `${LETTERS}${DIGITS}_.-`, 64);
  const isResource = (text: string) =>
    allowed(text, `${LETTERS}${DIGITS}@`, `${LETTERS}${DIGITS}_.-/:@`, 256);
  const isStackName = (text: string) =>
    text.length >= 3 && allowed(text, LETTERS, `${LETTERS}${DIGITS}-`, 55);
  const isNamespace = (text: string) => {
    const characters = [...text];
    return (
      text !== "" &&
      text !== "_" &&
      characters.length <= 250 &&
      characters.every((character) => {
        const code = character.codePointAt(0) as number;
        const control = code < 32 || code === 127;
        const half = code >= 0xd800 && code <= 0xdfff;
        return !control && !half;
      })
    );
  };

  const nearly = fc.constantFrom(...LETTERS, ...DIGITS, ..."_.-:@/");
  const junk = fc.oneof(
    fc.constantFrom("#", "\n", "\r\n", "\u2028", "\0", " ", "\t", "😀", "ä", "K", "\ud83d", "٣"),
    fc.string({ unit: "binary", maxLength: 3 }),
  );
  /** Mostly legal text, of a length around every limit, often with something illegal in it. */
  const text = fc
    .tuple(
      fc.oneof(
        fc.string({ unit: nearly, maxLength: 12 }),
        fc.string({ unit: nearly, minLength: 50, maxLength: 70 }),
        fc.string({ unit: nearly, minLength: 245, maxLength: 260 }),
        fc.constantFrom("wcu", "_", "_default_", "__proto__", "constructor", ""),
      ),
      fc.option(junk, { freq: 2, nil: "" }),
      fc.nat(),
    )
    .map(([base, inserted, position]) => {
      const at = position % (base.length + 1);
      return base.slice(0, at) + inserted + base.slice(at);
    });

  const rules = {
    "entity id": [checkEntityId, isId],
    "limit name": [checkLimitName, isLimitName],
    resource: [checkResource, isResource],
    "resource of a config": [
      checkConfigResource,
      (value: string) => value === "_default_" || isResource(value),
    ],
    principal: [checkPrincipal, (value: string) => value.startsWith("arn:") || isId(value)],
    "stack name": [checkStackName, isStackName],
    namespace: [checkNamespace, isNamespace],
  } as const;

  for (const [what, [check, oracle]] of Object.entries(rules)) {
    property(`every text is accepted or refused as the rule of a ${what} says`, [text], (value) => {
      let accepted = true;
      try {
        expect(check(value)).toBe(value);
      } catch (error) {
        expect(error).toBeInstanceOf(ValidationError);
        accepted = false;
      }
      expect(accepted).toBe(oracle(value));
    });
  }
});
