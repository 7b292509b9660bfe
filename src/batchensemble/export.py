"""One graph for serving: the ensemble's answer, its members, and its uncertainty, for a batch of any size."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from batchensemble.disk import check_folder, written_together
from batchensemble.ensemble import Ensemble, check_ensemble
from batchensemble.extras import require
from batchensemble.nn.mode import evaluating
from batchensemble.nn.routing.rows import axis_for_rows, rows_in

# Not "mean": in an ONNX graph that name belongs to a node.
CLASSIFIED = ("probs", "entropy", "mutual_information", "member_outputs")
REGRESSED = ("answer", "std", "member_outputs")
COMBINED = ("answer", "member_outputs")  # by a rule of the user's own


class Served(nn.Module):
    """What is exported: tensors in, a tuple of tensors out, in the order of `names`.

    Examples:
        >>> import batchensemble as be
        >>> served = Served(be.convert(nn.Linear(4, 3), members=2))
        >>> [tuple(output.shape) for output in served(torch.randn(5, 4))]
        [(5, 3), (5,), (5,), (2, 5, 3)]
    """

    def __init__(self, model: Ensemble) -> None:
        super().__init__()
        check_ensemble(model)
        rule = model.settings.combine
        if rule in ("vote", None):
            raise ValueError(
                f"combine={rule!r} does not say what to export. For members that rows name: "
                "torch.export.export(model.eval(), (x,), {'member': ids}), or torch.onnx.export with the same"
            )
        self.model = model
        self.names = COMBINED if callable(rule) else REGRESSED if rule == "mean" else CLASSIFIED

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        """The ensemble's answer (probabilities, mean, or your own), its uncertainties, every member's raw output."""
        prediction = self.model.answers(*inputs).prediction(self.model.settings.combine)
        outputs = prediction.outputs
        if self.names == COMBINED:
            return prediction.combined, outputs
        if self.names == REGRESSED:
            return prediction.mean, prediction.std, outputs
        return prediction.probs, prediction.entropy, prediction.mutual_information, outputs


def export_program(model: Ensemble, *inputs: Tensor) -> torch.export.ExportedProgram:
    """`torch.export` of the ensemble with a dynamic batch; run it with `program.module()(x)`.

    Its outputs are probabilities, entropy, mutual information and the members' outputs; for regression, the mean, the
    standard deviation and the members' outputs; for a `combine` of your own, what it returns and the members' outputs.

    Args:
        model: the ensemble.
        *inputs: example inputs, at least two rows.

    Examples:
        >>> import batchensemble as be
        >>> program = export_program(be.convert(nn.Linear(4, 3), members=2), torch.randn(2, 4))
        >>> program.module()(torch.randn(7, 4))[0].shape
        torch.Size([7, 3])
    """
    with _serving(model) as served:
        return torch.export.export(served, inputs, dynamic_shapes=(_dynamic(model, inputs),))


def export_onnx(
    model: Ensemble, *inputs: Tensor, path: str | Path, input_names: Sequence[str] | None = None, **options: Any
) -> tuple[str, ...]:
    """Write the ensemble to an ONNX file with a dynamic batch; needs the extra `onnx`.

    This is a single file, unless the weights exceed what torch puts into one (1.5 GB; ONNX allows 2). Then they are in
    a second file, whose name is that of the first with `.data` appended; the two belong together.

    Args:
        model: the ensemble.
        *inputs: example inputs, at least two rows.
        path: where the file goes. It is written beside this path and then renamed, after any file of weights, so that
            it is complete or absent.
        input_names: what the graph calls its inputs; by default the network's own argument names.
        **options: further options of `torch.onnx.export`; `external_data=True` puts weights of any size into a file of
            their own.

    Returns:
        The names of the graph's outputs, in order.

    Raises:
        ModuleNotFoundError: the extra `onnx` is not installed.
        FileNotFoundError: there is no folder to write into.
        OSError: the disk is full or cannot be written to.
    """
    check_ensemble(model)
    require("export_onnx", "onnx", "onnxscript")
    path = Path(path)
    check_folder(path)
    names = list(input_names or [name for name, _ in model.edge.named(inputs) if name])
    with _serving(model) as served:
        program = torch.onnx.export(
            served,
            inputs,
            input_names=names,
            output_names=list(served.names),
            dynamic_shapes=(_dynamic(model, inputs),),
            dynamo=True,
            verbose=False,
            **options,
        )
    with written_together(path) as folder:
        program.save(folder / path.name, external_data=options.get("external_data"))  # type: ignore[union-attr]
    return served.names


@contextmanager
def _serving(model: Ensemble) -> Iterator[Served]:
    """The module to export, in evaluation mode, without gradients; afterwards every module is back in its own mode."""
    with evaluating(model), torch.no_grad():
        yield Served(model).eval()


def _dynamic(model: Ensemble, inputs: Sequence[Tensor]) -> tuple[dict[int, Any], ...]:
    """Mark the rows as dynamic in every input that has them."""
    edge, shared = model.edge, model.settings.shared_inputs
    rows = edge.rows(inputs, {})
    if rows < 2:
        raise ValueError("export needs at least two example rows, or torch takes their number for fixed")
    batch = torch.export.Dim("batch")
    return tuple(
        {axis_for_rows(tensor, edge.axis): batch} if rows_in(tensor, edge.axis) == rows and name not in shared else {}
        for name, tensor in edge.named(inputs)
    )
