/**
 * Runs the end-to-end suite on a real AWS account. It costs money, so it never runs by itself: the
 * account and the region must be named, and the account must be that of the credentials.
 */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const root = fileURLToPath(new URL("..", import.meta.url));
const USAGE = `npm run test:aws-account -- --account 123456789012 --region eu-west-1 [--dry-run]`;
const ABOUT = `Creates one stack on AWS, uses it and deletes it again, in about ten minutes:
a table with its indexes, two Lambda functions, their roles and logs, a queue, a topic, a bucket for
the audit archive, nine alarms. It costs less than $0.10, most of it for alarms and Lambda. The
credentials need what \`stack deploy\` needs (docs/operators/iam.md).`;

const { values } = parsed();
const { account = "", region = "", "dry-run": isDry = false } = values;
if (!/^\d{12}$/.test(account) || !/^[a-z]{2}(-[a-z]+)+-\d$/.test(region)) {
  const wrong = account === "" || region === "" ? "an account and a region" : "12 digits, a region";
  fail(`Expected ${wrong}: nothing runs on AWS by itself.\n${USAGE}\n\n${ABOUT}`, 2);
}
const stamp = new Date().toISOString().replaceAll(/\D/g, "").slice(0, 14);
const name = `zael-test-${stamp}`;
const environment = {
  ...process.env,
  AWS_REGION: region,
  AWS_DEFAULT_REGION: region,
  ZAEL_AWS_ACCOUNT_STACK: name,
};
// What leads programs to a local DynamoDB must not lead this one there.
for (const local of ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_DYNAMODB", "ZAEL_URL", "ZAEL_STACK"]) {
  delete environment[local];
}
const STEPS = [
  ["build the package", "npm", ["run", "--silent", "build"]],
  [
    `deploy, use, upgrade and delete the stack ${name}`,
    process.execPath,
    ["node_modules/vitest/vitest.mjs", "run", "--project", "aws-account"],
  ],
];
/** Again, whatever came before: a test that was ended may have left the stack. */
const REMOVAL = ["dist/cli/main.js", "delete", "-n", name, "--with-data", "--yes"];

console.log(ABOUT);
console.log(`\nAccount ${account}, region ${region}, stack ${name}:`);
console.log("  check that the credentials are of this account");
for (const [what, command, args] of STEPS) console.log(`  ${what}: ${command} ${args.join(" ")}`);
console.log(`  remove what is left: node ${REMOVAL.join(" ")}`);
if (isDry) {
  console.log("\nDry run: nothing was sent to AWS and nothing was built.");
  process.exit(0);
}

const found = await accountOfCredentials();
if (found !== account) {
  fail(`These credentials are of the account ${found}, not of ${account}. Nothing was created`, 1);
}
let code = 0;
// Ctrl-C ends the step that runs; the removal comes after it all the same.
process.on("SIGINT", () => undefined);
for (const [, command, args] of STEPS) {
  code = spawnSync(command, args, { cwd: root, stdio: "inherit", env: environment }).status ?? 1;
  if (code !== 0) break;
}
const removed = spawnSync(process.execPath, REMOVAL, { cwd: root, env: environment });
const said = `${removed.stdout}${removed.stderr}`.trim();
const isGone = removed.status === 0 || /does not exist|no stack/i.test(said);
console.log(isGone ? `Nothing of ${name} is left.` : `NOT REMOVED, please look: ${name}\n${said}`);
process.exit(isGone ? code : code || 1);

function parsed() {
  const text = { type: "string" };
  try {
    const options = { account: text, region: text, "dry-run": { type: "boolean" } };
    return parseArgs({ options });
  } catch (error) {
    return fail(`${error.message}\n${USAGE}`, 2);
  }
}

/** Asks AWS whose credentials the SDK finds here. */
async function accountOfCredentials() {
  const { DynamoDBClient } = await import("@aws-sdk/client-dynamodb");
  const { default: aws4 } = await import("aws4");
  const credentials = await new DynamoDBClient({ region }).config.credentials();
  const host = `sts.${region}.amazonaws.com`;
  const path = "/?Action=GetCallerIdentity&Version=2011-06-15";
  const { headers } = aws4.sign({ host, path, service: "sts", region }, credentials);
  const answer = await fetch(`https://${host}${path}`, { headers });
  const body = await answer.text();
  const [, id] = /<Account>(\d+)<\/Account>/.exec(body) ?? [];
  return id ?? fail(`AWS did not say whose credentials these are (${answer.status}): ${body}`, 1);
}

function fail(message, status) {
  console.error(message);
  process.exit(status);
}
