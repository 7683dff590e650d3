/** Koa, as far as these tests use it; its own types are a package of many packages. */
declare module "koa" {
  import type { RequestListener } from "node:http";

  interface Context {
    body: unknown;
    readonly state: Record<string, unknown>;
  }
  type Middleware = (context: Context, next: () => Promise<void>) => Promise<void>;
  // biome-ignore lint/style/noDefaultExport: so does Koa.
  export default class Koa {
    silent: boolean;
    use(middleware: Middleware): this;
    callback(): RequestListener;
  }
}
