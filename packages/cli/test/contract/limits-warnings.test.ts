/** The warnings about a limits file that depend on the store. */

import { warningsOf } from "@zae-limiter/cli/commands/limits/limits-warnings.ts";
import { planManifest } from "@zae-limiter/limiter/manifest/apply.ts";
import { parseManifest } from "@zae-limiter/limiter/manifest/parse-manifest.ts";
import { describeStores } from "@zae-limiter/test-support/stores.ts";
import { expect, it } from "vitest";

describeStores("warnings about a limits file", (store) => {
  it("a plan names what the Python library does not see, on a table that it can use", async () => {
    const repo = await store.open();
    const limits = { limits: { rpm: { capacity: 5 } } };
    const manifest = parseManifest(
      JSON.stringify({
        namespace: repo.namespaceName,
        system: limits,
        resources: { "@all": limits, "gpt-4": limits },
        entities: { "team-a": { children: { _default_: limits } } },
      }),
    );
    const { lines } = await warningsOf(manifest, await planManifest(repo, manifest), repo);
    const places = "resource @all, children team-a/_default_";
    const warning = `Clients of the Python library do not see the limits of ${places}`;
    expect(lines).toEqual(store.embedded ? [] : [warning]);
  });
});
