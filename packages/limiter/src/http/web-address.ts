/** The client's address, where a runtime passes it next to a web-standard request. */

/** What Deno and Bun pass with a request: an object of the connection, or the server. */
interface ConnectionInfo {
  readonly remoteAddr?: { readonly hostname?: string };
  requestIP?(request: Request): { readonly address: string } | null;
}

/** Returns the address in Deno's or Bun's form; `undefined` where there is none. */
export function webAddress(request: Request, info: unknown): string | undefined {
  if (typeof info !== "object" || info === null) return undefined;
  const { remoteAddr, requestIP } = info as ConnectionInfo;
  if (typeof remoteAddr?.hostname === "string") return remoteAddr.hostname;
  if (typeof requestIP === "function") return requestIP.call(info, request)?.address;
  return undefined;
}
