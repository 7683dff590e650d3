/** The declaration that undici has for this file under another name. */
declare module "undici/lib/dispatcher/pool.js" {
  export { Pool as default } from "undici";
}
