/** The rules of this house. An exception is a file by name, with the reason in a comment. */

import type { Place } from "./places.ts";
import type { Quote } from "./plain-words.ts";
import { STORE_PLACES } from "./store-places.ts";

/** Files that wait for the part that will use them. */
export const AWAITED: readonly string[] = [];

/** Folders whose comments follow the rule of plain comments; the list grows until it has all. */
export const PLAIN_FOLDERS: readonly string[] = [
  "bench/",
  "examples/",
  "packages/aws/",
  "packages/cli/",
  "packages/dashboard/",
  "packages/gateway/",
  "packages/limiter/",
  "packages/loadtest/",
  "packages/simulator/",
  "packages/testing/",
  "scripts/",
  "src/",
  "test/",
];

/** Texts that need one of the unwanted words. */
export const QUOTES: readonly Quote[] = [
  ["test/architecture/plain-words.ts", "\\b(?:"],
  ["test/architecture.test.ts", 'test.each(["//'],
];

const clockPlaces: Place = {
  rule: "time is an argument, only the clock reads the wall clock",
  pattern: /\bDate\.now\b|\bnew Date\(\s*\)|(?<!new )\bDate\(\s*\)/g,
  within: "words",
  allowed: [
    "packages/limiter/src/base/time.ts",
    // Where a stream begins to be read, if the server did not say its time.
    "packages/limiter/src/storage/dynamodb/shard-reader.ts",
    // Spans of OpenTelemetry are placed on this machine's clock.
    "packages/limiter/src/otel/traces.ts",
  ],
};

const stopwatchPlaces: Place = {
  rule: "time is an argument, only the timer and the locks of real stores measure it",
  pattern: /\bperformance\.now\b|\bprocess\.hrtime\b/g,
  within: "words",
  allowed: [
    "packages/limiter/src/base/time.ts",
    // How often shards are looked up.
    "packages/limiter/src/storage/dynamodb/feed.ts",
    // Whose turn it is to write, between processes.
    "packages/limiter/src/storage/sqlite/database.ts",
    "packages/limiter/src/storage/sqlite/write-queue.ts",
  ],
};

const timerPlaces: Place = {
  rule: "waiting is for the timer and for stores that have something real to wait for",
  pattern: /\bset(?:Timeout|Interval|Immediate)\b|\bAbortSignal\.timeout\b/g,
  within: "words",
  allowed: [
    "packages/limiter/src/base/time.ts",
    // Lets all promises settle between two virtual moments.
    "packages/testing/src/time/virtual-time.ts",
    // The contract waits for stores that poll, and ends feeds that bring nothing.
    "packages/testing/src/item-store-contract/subject.ts",
    // Lets timers and sockets have their turn between tasks that wait for nothing.
    "packages/loadtest/src/local-fleet.ts",
    // Pauses between attempts, polls of a stream, a table that is being made.
    "packages/limiter/src/storage/dynamodb/transport/calls.ts",
    "packages/limiter/src/storage/dynamodb/feed.ts",
    "packages/limiter/src/storage/dynamodb/create-table.ts",
    // Attempts that end in real time, as sockets do.
    "packages/limiter/src/storage/dynamodb/transport/exchange.ts",
    "packages/limiter/src/storage/dynamodb/transport/transport.ts",
    // Requests that end in real time, as those of the transport do.
    "packages/limiter/src/storage/postgres/connection.ts",
    "packages/limiter/src/storage/redis/connection.ts",
    // Waiting for another process, and giving way to it.
    "packages/limiter/src/storage/sqlite/database.ts",
    "packages/limiter/src/storage/sqlite/item-store.ts",
    "packages/limiter/src/storage/sqlite/write-queue.ts",
  ],
};

const randomPlaces: Place = {
  rule: "randomness is an argument, only its source draws",
  pattern: /\bMath\.random\b|(?<![.\w])crypto\.|\bglobalThis\.crypto\b/g,
  within: "words",
  allowed: [
    "packages/limiter/src/base/random.ts",
    // Keys and tokens that no other test of the contract uses.
    "packages/testing/src/item-store-contract/subject.ts",
    // Namespaces that no other test of the contract uses.
    "packages/testing/src/limiter-contract/subject.ts",
  ],
};

const zonePlaces: Place = {
  rule: "local clocks of time zones come from one file",
  pattern: /\bIntl\.(?:DateTimeFormat|supportedValuesOf)\b/g,
  within: "words",
  allowed: ["packages/limiter/src/domain/zone.ts"],
};

const cryptoPlaces: Place = {
  rule: "randomness is an argument, and node:crypto has a source of its own",
  pattern: /["'](?:node:)?crypto["']/g,
  within: "code",
  allowed: [
    // Signatures draw nothing.
    "packages/limiter/src/storage/dynamodb/transport/signer.ts",
    // A digest of a manifest draws nothing.
    "packages/limiter/src/manifest/fingerprint.ts",
    // Nor does that of a script, by which the server knows it.
    "packages/limiter/src/storage/redis/scripts/script.ts",
    // Nor does the digest of what a copy has read.
    "packages/limiter/src/transfer/passes.ts",
    // Nor does one of a package.
    "packages/aws/src/lambda/lambda-code.ts",
    // Nor does the digest of a key that is too long for an entity id.
    "packages/limiter/src/http/entity-ids.ts",
    // Nor does the digest of a key of the gateway.
    "packages/gateway/src/keys.ts",
    // Nor do signatures of webhooks.
    "packages/gateway/src/alerts/signature.ts",
    // Nor does the digest of an event id that is not safe as the name of an object.
    "packages/aws/src/aggregator/audit-archive.ts",
    // Hashes of the dashboard's page, and a comparison of tokens.
    "packages/dashboard/src/server/digest.ts",
  ],
};

const environmentPlaces: Place = {
  rule: "the environment is read in one place",
  pattern: /\bprocess\.env\b/g,
  within: "words",
  allowed: [
    "packages/limiter/src/repository/environment.ts",
    "packages/cli/src/",
    // A Lambda function gets all its options from its environment.
    "packages/aws/src/aggregator/lambda.ts",
    "packages/aws/src/limits-resource/lambda.ts",
  ],
};

/** Words that are allowed nowhere. */
const nowhere: readonly Place[] = [
  { rule: "no any", pattern: /(?<![.\w])any\b(?!\s*[(:])/g, within: "words", allowed: [] },
  {
    rule: "no default exports",
    pattern: /\bexport\s+default\b|\bas\s+default\b(?=[\s\w,]*\})/g,
    within: "words",
    allowed: [
      // A plugin of Fastify is a default export by its users' custom, and by our contract.
      "packages/limiter/src/http/fastify.ts",
    ],
  },
  { rule: "no enums", pattern: /(?<![.\w])enum\s+\w+/g, within: "words", allowed: [] },
  { rule: "nothing left to do", pattern: /\b(?:TODO|FIXME)\b/g, within: "text", allowed: [] },
];

/** The public surface is a list of names, so that nothing becomes public by accident. */
const surface: Place = {
  rule: "exports are listed by name",
  pattern: /\bexport\s*\*/g,
  within: "words",
  // The package adds one method to what the limiter lists by name.
  allowed: ["src/index.ts"],
};

/**
 * The rules of a bucket are written once: the aggregator, the limits resource and every other part
 * ask the buckets (N13). The checkers of the simulator write them again, on purpose.
 */
const balancePlaces: Place = {
  rule: "only the buckets read and write stored balances",
  pattern: /_tk\b/g,
  within: "code",
  allowed: [
    "packages/limiter/src/buckets/",
    "packages/limiter/src/records/bucket-item.ts",
    "packages/limiter/src/records/bucket-shape.ts",
    "packages/testing/src/item-store-contract/",
    // A limit with the name of an attribute.
    "packages/testing/src/limiter-contract/acquire.ts",
    "packages/simulator/src/checkers/",
  ],
};

export const PLACES: readonly Place[] = [
  balancePlaces,
  clockPlaces,
  stopwatchPlaces,
  timerPlaces,
  randomPlaces,
  cryptoPlaces,
  zonePlaces,
  environmentPlaces,
  surface,
  ...STORE_PLACES,
  ...nowhere,
];
