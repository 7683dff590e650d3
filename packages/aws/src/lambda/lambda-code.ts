/** Uploads the code of a Lambda. The stack creates the Lambda; its code comes from here. */

import { createHash } from "node:crypto";
import type { Timer } from "@zae-limiter/limiter/base/time.ts";
import { StackOperationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import {
  CLIENT_VERSION,
  compareVersions,
  parseVersion,
} from "@zae-limiter/limiter/domain/version.ts";
import type { Aws } from "../client/aws.ts";
import { isRefusal } from "../client/aws-failure.ts";
import { LAMBDA_VERSION_TAG } from "../stack/stack-tags.ts";
import { functionNameOf, type LambdaName } from "./function-names.ts";
import { lambdaPackage } from "./lambda-package.ts";

/** Code that was uploaded, or was deployed already. */
export interface UploadedCode {
  /** Which of our functions. */
  readonly lambda: LambdaName;
  /** The name of the function on AWS. */
  readonly functionName: string;
  readonly functionArn: string;
  /** The size of the uploaded archive. */
  readonly sizeBytes: number;
  /** As Lambda computes it. */
  readonly sha256: string;
  /** False when the same or newer code was deployed already. */
  readonly changed: boolean;
  /** The version of the code that is there now. */
  readonly version: string;
}

/** A Lambda as it is deployed. */
export interface DeployedFunction {
  readonly arn: string;
  readonly sha256: string;
  readonly sizeBytes: number;
  /** As Lambda calls it, such as `nodejs22.x`; `undefined` for an image. */
  readonly runtime: string | undefined;
  readonly handler: string | undefined;
  readonly state: string;
  readonly lastUpdate: string;
  readonly lastUpdateReason: string | undefined;
  /** Version of the package that uploaded the code; `undefined` where it is not recorded. */
  readonly version: string | undefined;
}

/** The Lambdas of a stack, as they are deployed. */
export type DeployedLambdas = ReadonlyMap<LambdaName, DeployedFunction>;

const POLL_MS = 1000;
const TIMEOUT_MS = 180_000;
/** How often another client may be updating the same function before this one gives up. */
const CONFLICTS_MAX = 20;

/** Finds a Lambda of a stack; `undefined` where there is none. */
export async function findFunction(
  aws: Aws,
  functionName: string,
): Promise<DeployedFunction | undefined> {
  try {
    const { Configuration, Tags } = await aws.send("lambda:GetFunction", {
      FunctionName: functionName,
    });
    return {
      arn: Configuration?.FunctionArn ?? "",
      sha256: Configuration?.CodeSha256 ?? "",
      sizeBytes: Configuration?.CodeSize ?? 0,
      runtime: Configuration?.Runtime,
      handler: Configuration?.Handler,
      state: Configuration?.State ?? "Active",
      lastUpdate: Configuration?.LastUpdateStatus ?? "Successful",
      lastUpdateReason: Configuration?.LastUpdateStatusReason,
      version: Tags?.[LAMBDA_VERSION_TAG],
    };
  } catch (error) {
    if (isRefusal(error, "ResourceNotFoundException")) return undefined;
    throw error;
  }
}

/** Returns the Lambdas of a stack that exist, of those that are asked for. */
export async function findFunctions(
  aws: Aws,
  stackName: string,
  lambdas: readonly LambdaName[],
): Promise<DeployedLambdas> {
  const found = await Promise.all(
    lambdas.map(
      async (name) => [name, await findFunction(aws, functionNameOf(stackName, name))] as const,
    ),
  );
  return new Map(found.flatMap(([name, one]) => (one === undefined ? [] : [[name, one]])));
}

/** Uploads the package of a Lambda, unless it is there already, or newer code is. */
export async function uploadCode(
  aws: Aws,
  stackName: string,
  lambda: LambdaName,
  timer: Timer,
  over: Overwriting = "older",
): Promise<UploadedCode> {
  const functionName = functionNameOf(stackName, lambda);
  const zip = lambdaPackage(lambda);
  const put = await putCode(aws, { stackName, functionName, zip, over }, timer);
  return { lambda, functionName, ...put };
}

/** Which deployed code is replaced: code that is not newer, all other versions, or all code. */
export type Overwriting = "older" | "other" | "all";

interface NewCode {
  readonly stackName: string;
  readonly functionName: string;
  readonly zip: Uint8Array;
  readonly over: Overwriting;
}

/** Waits until the code is in use. */
export async function putCode(
  aws: Aws,
  code: NewCode,
  timer: Timer,
  conflicts = 0,
): Promise<Omit<UploadedCode, "lambda" | "functionName">> {
  const { stackName, functionName, zip, over } = code;
  const before = await settled(aws, stackName, functionName, timer);
  const { arn: functionArn, sizeBytes } = before;
  if (over === "older" && isNewer(before)) {
    const { sha256, version } = before;
    return { functionArn, sizeBytes, sha256, changed: false, version };
  }
  const sha256 = sha256Of(zip);
  const changed = over === "all" || before.sha256 !== sha256;
  if (changed) {
    if (!(await update(aws, functionName, zip, conflicts < CONFLICTS_MAX))) {
      await timer.sleep(POLL_MS);
      return putCode(aws, code, timer, conflicts + 1);
    }
    await settled(aws, stackName, functionName, timer);
  }
  if (changed || before.version !== CLIENT_VERSION) {
    const Tags = { [LAMBDA_VERSION_TAG]: CLIENT_VERSION };
    await aws.send("lambda:TagResource", { Resource: functionArn, Tags });
  }
  return { functionArn, sizeBytes: zip.length, sha256, changed, version: CLIENT_VERSION };
}

/** Returns false while another client updates the function, until the attempts are used up. */
async function update(
  aws: Aws,
  functionName: string,
  zip: Uint8Array,
  isPatient: boolean,
): Promise<boolean> {
  try {
    await aws.send("lambda:UpdateFunctionCode", { FunctionName: functionName, ZipFile: zip });
    return true;
  } catch (error) {
    if (isPatient && isRefusal(error, "ResourceConflictException")) return false;
    throw error;
  }
}

/** Whether it runs what our packages are made for. The Python library's does not. */
export function isNode({ runtime = "" }: DeployedFunction): boolean {
  return runtime.startsWith("nodejs");
}

/** Whether the code is from a later version than this one. It is never taken back unasked. */
export function isNewer(deployed: DeployedFunction): deployed is NewerFunction {
  const theirs = parseVersion(deployed.version ?? "");
  const ours = parseVersion(CLIENT_VERSION);
  if (theirs === undefined || ours === undefined) return false;
  return compareVersions(theirs, ours) > 0;
}

type NewerFunction = DeployedFunction & { readonly version: string };

/** Returns the note that the deployed Lambda is newer and stays. */
export function newerNote(lambda: LambdaName, { version }: NewerFunction): string {
  return (
    `The code of the ${lambda} is that of version ${version} and stays: this client is only ` +
    CLIENT_VERSION
  );
}

/** Whether the code of this version is what is deployed. */
export function isCurrent(deployed: DeployedFunction, lambda: LambdaName): boolean {
  return deployed.sha256 === sha256Of(lambdaPackage(lambda));
}

async function settled(
  aws: Aws,
  stackName: string,
  functionName: string,
  timer: Timer,
): Promise<DeployedFunction> {
  const startedMs = timer.nowMs();
  for (;;) {
    const found = await findFunction(aws, functionName);
    if (found === undefined) {
      throw new StackOperationError(stackName, `there is no Lambda ${functionName}`);
    }
    if (found.lastUpdate === "Failed" || found.state === "Failed") {
      const reason = found.lastUpdateReason ?? "no reason given";
      throw new StackOperationError(
        stackName,
        `${functionName} did not accept its code: ${reason}`,
      );
    }
    if (found.state !== "Pending" && found.lastUpdate !== "InProgress") return found;
    if (timer.nowMs() - startedMs > TIMEOUT_MS) {
      throw new StackOperationError(
        stackName,
        `${functionName} was not ready within ${TIMEOUT_MS / 1000} seconds; run deploy again`,
      );
    }
    await timer.sleep(POLL_MS);
  }
}

function sha256Of(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("base64");
}
