/** How a template gets to CloudFormation: with the request, or through S3 where it is too long. */

import type { Random } from "@zae-limiter/limiter/base/random.ts";
import type { Aws } from "../client/aws.ts";

/** The most bytes that a request may carry. */
const BODY_BYTES_MAX = 51_200;
const KEY = "template.json";
const LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789";
const SUFFIX_LENGTH = 20;

interface UploadedTemplate {
  readonly template: { readonly body: string } | { readonly url: string };
  /** Nothing stays behind. */
  remove(): Promise<void>;
}

interface UploadOptions {
  readonly random: Random;
  readonly endpoint?: string | undefined;
  readonly bytesMax?: number;
}

/** A bucket of its own, which exists for as long as CloudFormation needs to read the template. */
export async function uploadTemplate(
  aws: Aws,
  body: string,
  { random, endpoint, bytesMax = BODY_BYTES_MAX }: UploadOptions,
): Promise<UploadedTemplate> {
  if (Buffer.byteLength(body) <= bytesMax) {
    return { template: { body }, remove: async () => undefined };
  }
  const letter = () => LETTERS[Math.floor(random() * LETTERS.length)];
  const Bucket = `zae-limiter-${Array.from({ length: SUFFIX_LENGTH }, letter).join("")}`;
  const region = await aws.region();
  await aws.send("s3:CreateBucket", {
    Bucket,
    // The oldest region must not be named.
    ...(region === "us-east-1"
      ? {}
      : { CreateBucketConfiguration: { LocationConstraint: region as never } }),
  });
  const remove = async () => {
    await aws.send("s3:DeleteObjects", { Bucket, Delete: { Objects: [{ Key: KEY }] } });
    await aws.send("s3:DeleteBucket", { Bucket });
  };
  try {
    await aws.send("s3:PutObject", { Bucket, Key: KEY, Body: body });
  } catch (error) {
    await aws.send("s3:DeleteBucket", { Bucket });
    throw error;
  }
  return { template: { url: urlOf(Bucket, region, endpoint) }, remove };
}

function urlOf(bucket: string, region: string, endpoint: string | undefined): string {
  if (endpoint !== undefined) return `${endpoint.replace(/\/$/, "")}/${bucket}/${KEY}`;
  const suffix = region.startsWith("cn-") ? "amazonaws.com.cn" : "amazonaws.com";
  return `https://${bucket}.s3.${region}.${suffix}/${KEY}`;
}
