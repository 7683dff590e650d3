/** A server of a test run that is not spoken to by HTTP. */

/** The server of a run, or why there is none. */
export type ServerEngine =
  | { readonly url: string; readonly skipped?: undefined }
  | { readonly url?: undefined; readonly skipped: string };

/** Starts the server of a run: none where `yours` is the address of one of yours. */
export async function startServer(
  name: string,
  yours: string | undefined,
  start: () => Promise<{ readonly url: string; remove(): Promise<void> }>,
): Promise<{ readonly engine: ServerEngine; stop(): Promise<void> }> {
  const stop = () => Promise.resolve();
  if (yours !== undefined && yours !== "") return { engine: { url: yours }, stop };
  if (process.env.ZAEL_QUICK !== undefined) {
    return { engine: { skipped: "npm run test:quick starts no engine" }, stop };
  }
  try {
    const server = await start();
    return { engine: { url: server.url }, stop: () => server.remove() };
  } catch (error) {
    const skipped = (error as Error).message.split("\n", 1).join("");
    console.warn(`skipped ${name}: ${skipped}`);
    return { engine: { skipped }, stop };
  }
}
