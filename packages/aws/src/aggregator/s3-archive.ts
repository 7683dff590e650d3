/** An archive in a bucket of S3. */

import type { S3Client } from "@aws-sdk/client-s3";
import type { ArchiveSink } from "./audit-archive.ts";

interface S3ArchiveOptions {
  readonly bucket: string;
  readonly region?: string | undefined;
  readonly endpoint?: string | undefined;
}

/** The code of S3 for an object that exists. */
const EXISTS = "PreconditionFailed";

export class S3Archive implements ArchiveSink {
  readonly #options: S3ArchiveOptions;
  #client: Promise<S3Client> | undefined;

  constructor(options: S3ArchiveOptions) {
    this.#options = options;
  }

  /** Stores an object. The SDK repeats a failed attempt, so an existing object may be ours. */
  async put(key: string, body: Uint8Array): Promise<void> {
    const { PutObjectCommand } = await import("./sdk-s3.ts");
    this.#client ??= this.#connect();
    const client = await this.#client;
    const command = new PutObjectCommand({
      Bucket: this.#options.bucket,
      Key: key,
      Body: body,
      ContentType: "application/x-ndjson",
      ContentEncoding: "gzip",
      IfNoneMatch: "*",
    });
    try {
      await client.send(command);
    } catch (error) {
      if (!(error instanceof Error) || error.name !== EXISTS) throw error;
    }
  }

  async #connect(): Promise<S3Client> {
    const { S3Client: Client } = await import("./sdk-s3.ts");
    const { region, endpoint } = this.#options;
    return new Client({
      ...(region === undefined ? {} : { region }),
      // A local S3 server has its buckets as paths of its address, not as hosts.
      ...(endpoint === undefined ? {} : { endpoint, forcePathStyle: true }),
    });
  }
}
