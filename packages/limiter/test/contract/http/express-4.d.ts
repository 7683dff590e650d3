/** Express 4 under an alias, as far as these tests use it like Express 5. */
declare module "express-4" {
  import express from "express";
  // biome-ignore lint/style/noDefaultExport: so does Express.
  export default express;
}
