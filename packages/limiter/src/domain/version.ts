/** Versions of client, schema and Lambda, and whether they fit together. */

/** The version of this package. */
export const CLIENT_VERSION = "0.1.0";

/**
 * The release of the Python library that this package keeps up with on a shared table: what it
 * enforces, and what it refuses by name because it cannot enforce it yet. `client_min_version` of a
 * table counts in releases of that library.
 */
export const REFERENCE_VERSION = "0.17.0";

/** The version of the table's layout that this package writes. */
export const SCHEMA_VERSION = "0.11.0";

/**
 * The oldest layout that this package can use or migrate. Before it, buckets had other keys: this
 * client would see every bucket as unused and grant its whole capacity again.
 */
export const SCHEMA_VERSION_MIN = "0.9.0";

const OLDEST_LAYOUT = `oldest layout that this client can use or migrate is ${SCHEMA_VERSION_MIN}`;
/** Names the release whose tables this package can use, not the first one that would do. */
const UPGRADE_WITH_PYTHON =
  `Upgrade the table first with release ${REFERENCE_VERSION} of the Python library: its command ` +
  '"zae-limiter upgrade --name TABLE"';

interface Version {
  readonly release: readonly [number, number, number];
  /** `undefined` for a release; text such as `dev` or `rc1` before one. */
  readonly prerelease: string | undefined;
}

const VERSION_PATTERN = /^v?(\d+)\.(\d+)\.(\d+)(?:-([0-9A-Za-z.-]+)(?:\+.*)?|(\.dev).*|\+.*)?$/;

/** Whether client, schema and Lambda fit, and what would make them. */
export interface Compatibility {
  readonly compatible: boolean;
  /** A migration to the layout of this package is possible; where it is compatible, it can wait. */
  readonly needsMigration: boolean;
  /** The layout is older than all that this package can migrate; the Python library upgrades it. */
  readonly isTooOld: boolean;
  readonly needsLambdaUpdate: boolean;
  readonly message: string;
}

/**
 * Reads `X.Y.Z`, perhaps with `v` before and `-pre` or `.devN` behind; `undefined` for other text.
 */
export function parseVersion(text: string): Version | undefined {
  const match = VERSION_PATTERN.exec(text);
  if (match === null) return undefined;
  const [, major, minor, patch, prerelease, dev] = match;
  return {
    release: [Number(major), Number(minor), Number(patch)],
    prerelease: dev === undefined ? prerelease : "dev",
  };
}

/** Returns a negative number, zero or a positive one; a prerelease comes before its release. */
export function compareVersions(left: Version, right: Version): number {
  const release = compareReleases(left, right);
  if (release !== 0) return release;
  if (left.prerelease === right.prerelease) return 0;
  if (left.prerelease === undefined) return 1;
  if (right.prerelease === undefined) return -1;
  return left.prerelease < right.prerelease ? -1 : 1;
}

/** Compares versions; the first rule that matches decides. */
export function checkCompatibility(versions: {
  client: string;
  schema: string;
  clientMin: string;
  lambda?: string | undefined;
}): Compatibility {
  const client = parseVersion(versions.client);
  const schema = parseVersion(versions.schema);
  const clientMin = parseVersion(versions.clientMin);
  if (client === undefined) return incompatible(`"${versions.client}" is not a client version`);
  if (schema === undefined) return incompatible(`"${versions.schema}" is not a schema version`);
  if (clientMin === undefined) {
    return incompatible(`"${versions.clientMin}" is not a minimum client version`);
  }
  if (isBelow(parseVersion(REFERENCE_VERSION) as Version, versions.clientMin)) {
    return incompatible(
      `The table asks for clients that keep up with release ${versions.clientMin} of the Python ` +
        `library; this version keeps up with ${REFERENCE_VERSION}`,
    );
  }
  if (client.release[0] !== schema.release[0]) {
    return {
      ...incompatible("Client and schema have different major versions: migrate the table first"),
      needsMigration: true,
    };
  }
  if (isBelow(schema, SCHEMA_VERSION_MIN)) {
    return tooOld(`The ${OLDEST_LAYOUT}. ${UPGRADE_WITH_PYTHON}`);
  }
  return fitting(client, schema, versions.lambda);
}

/** The answer for a table with a version record outside every namespace, whatever number it has. */
export const WITHOUT_NAMESPACES: Compatibility = tooOld(
  `The table has records from before there were namespaces; the ${OLDEST_LAYOUT}. ` +
    `${UPGRADE_WITH_PYTHON}, then the script for namespaced keys in its documentation, with --delete`,
);

/** Returns that the versions fit, and which of them could be newer. */
function fitting(client: Version, schema: Version, lambdaText: string | undefined): Compatibility {
  const lambda = lambdaText === undefined ? client : parseVersion(lambdaText);
  const needsLambdaUpdate = lambda === undefined || compareReleases(lambda, client) < 0;
  const needsMigration = isBelow(schema, SCHEMA_VERSION);
  const sentences = [
    ...(needsLambdaUpdate ? ["The Lambda is older than this client"] : []),
    ...(needsMigration ? [`The table can be brought to schema ${SCHEMA_VERSION}`] : []),
  ];
  return {
    compatible: true,
    needsMigration,
    isTooOld: false,
    needsLambdaUpdate,
    message: sentences.join(". "),
  };
}

function isBelow(version: Version, text: string): boolean {
  return compareVersions(version, parseVersion(text) as Version) < 0;
}

function compareReleases(left: Version, right: Version): number {
  for (const part of [0, 1, 2] as const) {
    const difference = left.release[part] - right.release[part];
    if (difference !== 0) return difference;
  }
  return 0;
}

function incompatible(message: string): Compatibility {
  return {
    compatible: false,
    needsMigration: false,
    isTooOld: false,
    needsLambdaUpdate: false,
    message,
  };
}

function tooOld(message: string): Compatibility {
  return { ...incompatible(message), isTooOld: true };
}

/** Whether a release comes before another one; text that is no version comes before all. */
export function isOlder(text: string, other: string): boolean {
  const version = parseVersion(text);
  return version === undefined || isBelow(version, other);
}
