"""One vector for a whole text: the mean of a model's last states. It must never know what it is for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import EngineError
from ..language import _
from ._native import NativeModel, last_log, library, signals_later


def embed(model: NativeModel, token_ids: Sequence[int], *, threads: int) -> list[float]:
    """[D] vector of length 1 of a text in tokens [T], on the base model, in a context of its own that is freed again.

    Raises:
        EngineError: there is not enough memory, or llama.cpp failed.
    """
    lib = library()
    count = len(token_ids)
    parameters = lib.llama_context_default_params()
    parameters.n_ctx = parameters.n_batch = parameters.n_ubatch = max(count, 32)
    parameters.n_threads = parameters.n_threads_batch = threads
    parameters.embeddings = True
    parameters.pooling_type = lib.LLAMA_POOLING_TYPE_MEAN
    parameters.no_perf = True
    with signals_later():
        context = lib.llama_init_from_model(model.pointer, parameters)
    if not context:
        raise EngineError(
            _(
                "There is not enough memory for a text of {count} tokens ({reason}).",
                count=count,
                reason=last_log() or _("no reason given"),
            )
        )
    batch = lib.llama_batch_init(count, 0, 1)
    try:
        batch.n_tokens = count
        for place, token in enumerate(token_ids):
            batch.token[place] = token
            batch.pos[place] = place
            batch.n_seq_id[place] = 1
            batch.seq_id[place][0] = 0
            batch.logits[place] = 1
        if lib.llama_decode(context, batch) != 0:
            raise EngineError(
                _(
                    "The engine failed while it computed ({reason}). Try again.",
                    reason=last_log() or _("no reason given"),
                )
            )
        row = lib.llama_get_embeddings_seq(context, 0)
        if not row:
            raise EngineError(_("This model gives no vectors for texts. Use another one."))
        vector = np.ctypeslib.as_array(row, shape=(int(lib.llama_model_n_embd(model.pointer)),)).astype(np.float64)
    finally:
        lib.llama_batch_free(batch)
        lib.llama_free(context)
    length = float(np.linalg.norm(vector))
    return [float(part) for part in (vector / length if length else vector)]
