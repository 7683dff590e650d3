"""The scenario `max-rps` of examples/loadtest with the Python library: users that never wait.

Arguments: stack, endpoint, namespace, users, seconds, "standalone" or "cascade". Prints JSON with
the latencies of all acquires in milliseconds, and what was consumed.
"""

import asyncio
import json
import sys
import time
import warnings

warnings.simplefilter("ignore")

import zae_limiter
from zae_limiter import Limit, RateLimiter, Repository

PARENT = "python-max-rps"
RESOURCE = "api"


async def main():
    stack, endpoint, namespace, users, seconds, kind = sys.argv[1:]
    cascade = kind == "cascade"
    repo = await Repository.open(
        namespace=namespace,
        stack=stack,
        endpoint_url=endpoint,
        region="us-east-1",
        auto_update=False,
    )
    limiter = RateLimiter(repository=repo)
    await repo.set_resource_defaults(RESOURCE, [Limit.per_minute("rpm", 1_000_000_000)])
    if cascade:
        await repo.create_entity(PARENT)
    latencies = []
    errors = {}

    async def user(number):
        entity = f"python-{kind}-{number}"
        if cascade:
            await repo.create_entity(entity, parent_id=PARENT, cascade=True)
        await asyncio.sleep(0)
        while time.perf_counter() < end:
            started = time.perf_counter()
            try:
                async with limiter.acquire(entity, RESOURCE, {"rpm": 1}):
                    latencies.append((time.perf_counter() - started) * 1000)
            except Exception as error:
                name = f"{type(error).__name__}: {error}"[:200]
                errors[name] = errors.get(name, 0) + 1

    begin = time.perf_counter()
    end = begin + float(seconds)
    await asyncio.gather(*(user(number) for number in range(int(users))))
    elapsed = time.perf_counter() - begin
    await repo.close()
    latencies.sort()
    of = lambda share: latencies[min(len(latencies) - 1, int(share * len(latencies)))]
    figures = {"p50": of(0.5), "p95": of(0.95), "p99": of(0.99), "max": latencies[-1]}
    print(
        json.dumps(
            {
                "version": zae_limiter.__version__,
                "granted": len(latencies),
                "perSecond": len(latencies) / elapsed,
                "errors": errors,
                **figures,
            }
        )
    )


asyncio.run(main())
