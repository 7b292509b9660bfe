"""On a GPU: steps of many shapes are replayed, in bfloat16, and the toy language is learnt as on a processor."""

from dataclasses import replace

import pytest
import torch

from batchensemble.lab.experiments.translators import TOY
from batchensemble.lab.records import Run
from batchensemble.lab.studies.study import Context
from batchensemble.lab.studies.translation import TRANSLATION, Members, Settings

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("members", [None, Members(), Members(2, rows="repeated", cross_attention=True)])
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_the_toy_language_is_learnt_on_a_gpu(tmp_path, members, precision):
    recipe = replace(TOY, members=members, precision=precision, steps=300)
    run = Run("translation", Settings(recipe), "smoke", 0)
    found = TRANSLATION.run(run, Context(work=tmp_path, device="cuda")).metrics
    assert found["bleu"] > 60
    assert found["perplexity"] < 1.5


def test_replayed_steps_are_the_steps_that_a_processor_takes(tmp_path):
    recipe = replace(TOY, members=Members(), dropout=0.0, steps=60, epoch=20, bleu_every=99)
    losses = {}
    for device in ("cpu", "cuda"):
        run = Run("translation", Settings(recipe), "smoke", 0)
        record = TRANSLATION.run(run, Context(work=tmp_path / device, device=device))
        losses[device] = torch.tensor(record.metrics["training_loss"])
    torch.testing.assert_close(losses["cuda"], losses["cpu"], rtol=0.02, atol=0.02)
