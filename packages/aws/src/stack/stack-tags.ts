/** The tags by which stacks are found again. Ours win over those of a user. */

import { CLIENT_VERSION, SCHEMA_VERSION } from "@zae-limiter/limiter/domain/version.ts";

const MANAGED_BY = "ManagedBy";
const OURS = "zae-limiter";
/** Very old versions of the Python library put it before every name. */
const LEGACY_PREFIX = "ZAEL-";

export const MANAGED_TAG = { key: MANAGED_BY, value: OURS } as const;
export const NAME_TAG = "zae-limiter:name";
export const TYPE_TAG = "zae-limiter:type";
export const VERSION_TAG = "zae-limiter:version";
export const SCHEMA_VERSION_TAG = "zae-limiter:schema-version";
export const LAMBDA_VERSION_TAG = "zae-limiter:lambda-version";

/** Returns `my-app` for `ZAEL-my-app`, as its user knows it. */
export function userNameOf(stackName: string): string {
  return stackName.startsWith(LEGACY_PREFIX) ? stackName.slice(LEGACY_PREFIX.length) : stackName;
}

function isLegacyName(stackName: string): boolean {
  return stackName.startsWith(LEGACY_PREFIX);
}

/** Whether the tags or the name of a stack say that it is ours. */
export function isMarked(stackName: string, tags: Readonly<Record<string, string>>): boolean {
  return tags[MANAGED_BY] === OURS || isLegacyName(stackName);
}

/** Returns the tags without those that AWS itself has set: it refuses them in a request. */
export function settableTags(tags: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(tags).filter(([name]) => !isAwsTag(name)));
}

export function isAwsTag(name: string): boolean {
  return name.toLowerCase().startsWith("aws:");
}

/**
 * Returns all tags of a stack: those of the user, and ours over them. CloudFormation passes them to
 * the Lambdas, so the version of their code has to be the one they run.
 */
export function stackTags(
  stackName: string,
  userTags: Readonly<Record<string, string>>,
  lambdaVersion: string = CLIENT_VERSION,
): Readonly<Record<string, string>> {
  return {
    ...userTags,
    [MANAGED_BY]: OURS,
    [NAME_TAG]: userNameOf(stackName),
    [TYPE_TAG]: "limiter",
    [VERSION_TAG]: CLIENT_VERSION,
    [SCHEMA_VERSION_TAG]: SCHEMA_VERSION,
    [LAMBDA_VERSION_TAG]: lambdaVersion,
  };
}

/** Whether a tag is one of ours. */
export function isManagedTag(name: string): boolean {
  return Object.hasOwn(stackTags("", {}), name);
}

/** Whether a stack can be found by its tags. */
export function hasDiscoveryTags(
  stackName: string,
  tags: Readonly<Record<string, string>>,
): boolean {
  return tags[MANAGED_BY] === OURS && tags[NAME_TAG] === userNameOf(stackName);
}
