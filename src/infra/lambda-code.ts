/** Puts the code of a Lambda in its place. The stack makes the Lambda; the code comes from here. */

import { createHash } from "node:crypto";
import { StackOperationError } from "../domain/errors.ts";
import type { Timer } from "../domain/timer.ts";
import { CLIENT_VERSION } from "../domain/version.ts";
import type { Aws } from "./aws.ts";
import { AwsRefusal } from "./aws-failure.ts";
import { LAMBDAS, type LambdaName, lambdaPackage } from "./lambda-package.ts";
import { LAMBDA_VERSION_TAG } from "./stack-tags.ts";

/** What was uploaded. */
export interface UploadedCode {
  readonly lambda: LambdaName;
  readonly functionName: string;
  readonly functionArn: string;
  readonly sizeBytes: number;
  /** As Lambda computes it. */
  readonly sha256: string;
  /** False when the same code was there already. */
  readonly changed: boolean;
}

/** A Lambda as it is deployed. */
export interface DeployedFunction {
  readonly arn: string;
  readonly sha256: string;
  readonly state: string;
  readonly lastUpdate: string;
  readonly lastUpdateReason: string | undefined;
  /** Of the package that put its code there; `undefined` for the stand-in. */
  readonly version: string | undefined;
}

const POLL_MS = 1000;
const TIMEOUT_MS = 180_000;

export function functionNameOf(stackName: string, lambda: LambdaName): string {
  return `${stackName}-${LAMBDAS[lambda]}`;
}

/** A Lambda of a stack; `undefined` where there is none. */
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
      state: Configuration?.State ?? "Active",
      lastUpdate: Configuration?.LastUpdateStatus ?? "Successful",
      lastUpdateReason: Configuration?.LastUpdateStatusReason,
      version: Tags?.[LAMBDA_VERSION_TAG],
    };
  } catch (error) {
    if (error instanceof AwsRefusal && error.awsCode === "ResourceNotFoundException") {
      return undefined;
    }
    throw error;
  }
}

/** Uploads the package of a Lambda, unless it is there already; `always` does it all the same. */
export async function uploadCode(
  aws: Aws,
  stackName: string,
  lambda: LambdaName,
  timer: Timer,
  always = false,
): Promise<UploadedCode> {
  const functionName = functionNameOf(stackName, lambda);
  const zip = lambdaPackage(lambda);
  const put = await putCode(aws, { stackName, functionName, zip, always }, timer);
  return { lambda, functionName, sizeBytes: zip.length, ...put };
}

interface NewCode {
  readonly stackName: string;
  readonly functionName: string;
  readonly zip: Uint8Array;
  readonly always: boolean;
}

/** Waits until the code is in use. */
export async function putCode(
  aws: Aws,
  { stackName, functionName, zip, always }: NewCode,
  timer: Timer,
): Promise<Pick<UploadedCode, "functionArn" | "sha256" | "changed">> {
  const sha256 = sha256Of(zip);
  const { arn, version, ...before } = await settled(aws, stackName, functionName, timer);
  const changed = always || before.sha256 !== sha256;
  if (changed) {
    await aws.send("lambda:UpdateFunctionCode", { FunctionName: functionName, ZipFile: zip });
    await settled(aws, stackName, functionName, timer);
  }
  if (changed || version !== CLIENT_VERSION) {
    await aws.send("lambda:TagResource", {
      Resource: arn,
      Tags: { [LAMBDA_VERSION_TAG]: CLIENT_VERSION },
    });
  }
  return { functionArn: arn, sha256, changed };
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
      throw new StackOperationError(stackName, `${functionName} did not take its code: ${reason}`);
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
