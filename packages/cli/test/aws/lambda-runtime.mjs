/** The part of AWS's runtime that asks for invocations and answers them, over the runtime API. */

const api = `http://${process.env.AWS_LAMBDA_RUNTIME_API}/2018-06-01/runtime/invocation`;
const { handler } = await import(process.argv[2]);

async function post(id, path, value) {
  await fetch(`${api}/${id}/${path}`, { method: "POST", body: JSON.stringify(value) });
}

for (;;) {
  const next = await fetch(`${api}/next`);
  const id = next.headers.get("lambda-runtime-aws-request-id");
  try {
    await post(id, "response", await handler(await next.json(), { awsRequestId: id }));
  } catch (error) {
    await post(id, "error", { errorMessage: String(error.message), errorType: error.name });
  }
}
