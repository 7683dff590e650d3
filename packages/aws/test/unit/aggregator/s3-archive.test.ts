import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { gunzipSync, gzipSync } from "node:zlib";
import { S3Archive } from "@zae-limiter/aws/aggregator/s3-archive.ts";
import { afterEach, expect, test, vi } from "vitest";

afterEach(() => vi.unstubAllEnvs());

/** Takes what is put, as S3 would. */
async function bucketServer(status = 200, text = "") {
  const puts: { url: string; headers: NodeJS.Dict<string | string[]>; body: Buffer }[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { url = "", headers, method } = request;
      if (method === "PUT") puts.push({ url, headers, body: Buffer.concat(chunks) });
      response.writeHead(status).end(text);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    puts,
    endpoint: `http://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

function archiveAt(endpoint: string): S3Archive {
  vi.stubEnv("AWS_ACCESS_KEY_ID", "local");
  vi.stubEnv("AWS_SECRET_ACCESS_KEY", "local");
  return new S3Archive({ bucket: "audit-bucket", region: "eu-west-1", endpoint });
}

test("an object goes to its bucket under its key, marked as compressed lines of JSON", async () => {
  await using server = await bucketServer();
  const key = "audit/year=2024/month=01/day=15/audit-01HM.jsonl.gz";
  await archiveAt(server.endpoint).put(key, gzipSync('{"event_id":"01HM"}\n'));
  const [put] = server.puts;
  expect(decodeURIComponent(put?.url ?? "").split("?")[0]).toBe(`/audit-bucket/${key}`);
  expect(put?.headers).toMatchObject({
    "content-type": "application/x-ndjson",
    "if-none-match": "*",
  });
  expect(put?.headers["content-encoding"]).toContain("gzip");
  expect(gunzipSync(put?.body ?? "").toString()).toBe('{"event_id":"01HM"}\n');
});

test("a refusal of the bucket is an error", async () => {
  await using server = await bucketServer(403);
  await expect(archiveAt(server.endpoint).put("k", gzipSync("x"))).rejects.toThrow();
});

test("an object that exists is not replaced, without an error", async () => {
  const text = "<Error><Code>PreconditionFailed</Code><Message>At least one</Message></Error>";
  await using server = await bucketServer(412, text);
  await archiveAt(server.endpoint).put("k", gzipSync("x"));
  expect(server.puts).toHaveLength(1);
});
