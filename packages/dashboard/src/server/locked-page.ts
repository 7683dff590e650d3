/** The page that a browser shows when the address of a command was opened without its token. */

import { type Page, policyOf } from "./page-file.ts";

const HTML = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>zae-limiter: token missing</title>
<style>
:root { color-scheme: light dark; }
body { max-width: 34rem; margin: 15vh auto 0; padding: 0 1.25rem; line-height: 1.5;
  font-family: system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
h1 { font-size: 1.25rem; }
</style>
</head>
<body>
<main>
<h1>Open the address that the command printed</h1>
<p>This page needs the token at the end of that address. Each start of the command makes another
token, unless <code>--token</code> names one.</p>
<p>If the terminal no longer shows the address, end the command with Ctrl-C and start it again.</p>
</main>
</body>
</html>
`;

export const LOCKED_PAGE: Page = { html: HTML, policy: policyOf(HTML) };
