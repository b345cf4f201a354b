"""Writing through `Assistant`, with everything recorded, over the barest loop and over llama-cpp-python.

    python -m benchmarks decode [--model FILE.gguf] [--tokens 128] [--rounds 5] [--threads N] [--json]

`ratio_raw`: tokens a second after the first token, over a bare loop on llama.cpp's C API that takes the likeliest token
(same file, threads and prompt). `ratio_llama_cpp_python`: over its `create_chat_completion`, streamed, with the same
sampling. In the assistant's seconds are drawing, log-probabilities, and each piece written to the store.
"""

from __future__ import annotations

import time

from claw_local.assistant import Assistant
from claw_local.engine.base import Message, Sampling
from claw_local.engine.llama_cpp import LlamaCppEngine
from claw_local.settings import ModelSettings, Settings

from .bare import Bare
from .sidebyside import in_turns, medians, options_of, own_home, ratio, say

QUESTION = "Write a long story about a lighthouse keeper, his daughter, and the storm of the century. Number {}."


def main() -> None:
    options = options_of(
        "decode", __doc__, rounds=5, more=lambda p: p.add_argument("--tokens", type=int, default=128, help="of a reply")
    )
    from llama_cpp import Llama

    settings = Settings(model=ModelSettings(threads=options.threads))
    sampling = Sampling(max_tokens=options.tokens, seed=1)
    with LlamaCppEngine.open(options.model, settings.model, cache_dir=None) as engine:
        prompt = engine.render([Message("user", QUESTION.format(0))]).token_ids
    bare = Bare(options.model, threads=options.threads)
    peer = Llama(str(options.model), n_ctx=4096, n_threads=options.threads, verbose=False)
    asked = iter(range(10**6))

    with own_home() as home, Assistant.open(home, model=options.model, settings=settings) as assistant:

        def mine() -> float:
            started = time.perf_counter()
            answer = assistant.ask(QUESTION.format(next(asked)), sampling=sampling)
            return (answer.completion_tokens - 1) / (
                time.perf_counter() - started - answer.first_token_s - answer.load_s
            )

        def raw() -> float:
            bare.keep(0)
            return bare.write(bare.read(prompt), options.tokens - 1)

        def python() -> float:
            stream = peer.create_chat_completion(
                [{"role": "user", "content": QUESTION.format(next(asked))}],
                max_tokens=options.tokens,
                temperature=sampling.temperature,
                top_p=sampling.top_p,
                top_k=sampling.top_k,
                repeat_penalty=sampling.repeat_penalty,
                seed=1,
                stream=True,
            )
            times = [time.perf_counter() for chunk in stream if "content" in chunk["choices"][0]["delta"]]
            return (len(times) - 1) / (times[-1] - times[0])

        found = in_turns({"assistant": mine, "raw": raw, "llama_cpp_python": python}, options.rounds)
    bare.close()
    say(
        {
            "ratio_raw": ratio(found["assistant"], found["raw"]),
            "ratio_llama_cpp_python": ratio(found["assistant"], found["llama_cpp_python"]),
            "tokens_per_s": medians(found, 1),
        },
        options,
    )


if __name__ == "__main__":
    main()
