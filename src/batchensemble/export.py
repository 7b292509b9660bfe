"""One graph for serving: the ensemble's answer, its members, and its uncertainty, for a batch of any size."""

import inspect
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from batchensemble.disk import check_folder, written_together
from batchensemble.ensemble import Ensemble, check_ensemble
from batchensemble.ensemble.signature import forward_with
from batchensemble.export_inputs import Inputs, by_position
from batchensemble.extras import require
from batchensemble.nn.mode import evaluating

# Not "mean": in an ONNX graph that name belongs to a node.
CLASSIFIED = ("probs", "entropy", "mutual_information", "member_outputs")
REGRESSED = ("answer", "std", "member_outputs")
COMBINED = ("answer", "member_outputs")  # by a rule of the user's own


class Served(nn.Module):
    """What is exported: tensors in, a tuple of tensors out, in the order of `names`.

    Args:
        model: the ensemble.
        keywords: which inputs are given by name.
        constants: arguments of the network that are the same in every call.

    Examples:
        >>> import batchensemble as be
        >>> served = Served(be.convert(nn.Linear(4, 3), members=2))
        >>> [tuple(output.shape) for output in served(torch.randn(5, 4))]
        [(5, 3), (5,), (5,), (2, 5, 3)]
    """

    def __init__(
        self, model: Ensemble, keywords: Sequence[str] = (), constants: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__()
        rule = model.settings.combine
        if rule in ("vote", None):
            raise ValueError(
                f"combine={rule!r} does not say what to export. For members that rows name: "
                "torch.export.export(model.eval(), (x,), {'member': ids}), or torch.onnx.export with the same"
            )
        self.model, self.constants = model, dict(constants or {})
        self.names = COMBINED if callable(rule) else REGRESSED if rule == "mean" else CLASSIFIED
        # torch.export takes no dynamic shapes for **kwargs, so that every keyword must be in the signature
        parameters = [inspect.Parameter(by_position(keywords), inspect.Parameter.VAR_POSITIONAL)]
        parameters += [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in keywords]
        self.__dict__["forward"] = forward_with(inspect.Signature(parameters), self)

    def forward(self, *args: Tensor, **kwargs: Tensor) -> tuple[Tensor, ...]:
        """The ensemble's answer (probabilities, mean, or your own), its uncertainties, every member's raw output."""
        prediction = self.model.answers(*args, **kwargs, **self.constants).prediction(self.model.settings.combine)
        outputs = prediction.outputs
        if self.names == COMBINED:
            return prediction.combined, outputs
        if self.names == REGRESSED:
            return prediction.mean, prediction.std, outputs
        return prediction.probs, prediction.entropy, prediction.mutual_information, outputs


def export_program(model: Ensemble, /, *args: Tensor, **kwargs: Any) -> torch.export.ExportedProgram:
    """`torch.export` of the ensemble with a dynamic batch; run it with `program.module()(x)`.

    Its outputs are probabilities, entropy, mutual information and the members' outputs; for regression, the mean, the
    standard deviation and the members' outputs; for a `combine` of your own, what it returns and the members' outputs.

    Args:
        model: the ensemble.
        *args: example inputs, at least two rows.
        **kwargs: the network's keyword inputs. Tensors are inputs of the program, by the same names; anything else (a
            flag, `None`) is part of it.

    Examples:
        >>> import batchensemble as be
        >>> program = export_program(be.convert(nn.Linear(4, 3), members=2), torch.randn(2, 4))
        >>> program.module()(torch.randn(7, 4))[0].shape
        torch.Size([7, 3])
    """
    check_ensemble(model)
    with _serving(model, args, kwargs) as (served, inputs):
        return torch.export.export(served, inputs.args, inputs.kwargs, dynamic_shapes=inputs.shapes)


def export_onnx(
    model: Ensemble, /, *args: Tensor, path: str | Path, input_names: Sequence[str] | None = None, **kwargs: Any
) -> tuple[str, ...]:
    """Write the ensemble to an ONNX file with a dynamic batch; needs the extra `onnx`.

    This is a single file, unless the weights exceed what torch puts into one (1.5 GB; ONNX allows 2). Then they are in
    a second file, whose name is that of the first with `.data` appended; the two belong together.

    Args:
        model: the ensemble.
        *args: example inputs, at least two rows.
        path: where the file goes. It is written beside this path and then renamed, after any file of weights, so that
            it is complete or absent.
        input_names: what the graph calls its inputs: first those given by position, then those given by name, in the
            order of the network's signature; by default the network's own argument names.
        **kwargs: the network's keyword inputs, as for `export_program`, and options of `torch.onnx.export`:
            `external_data=True` puts weights of any size into a file of their own. An input that is called like an
            option is given by position.

    Returns:
        The names of the graph's outputs, in order.

    Raises:
        ModuleNotFoundError: the extra `onnx` is not installed.
        ValueError: a keyword is an input of the network and an option of torch, `input_names` are too many or few, or a
            name would be there twice.
        FileNotFoundError: there is no folder to write into.
        OSError: the disk is full or cannot be written to.
    """
    check_ensemble(model)
    require("export_onnx", "onnx", "onnxscript")
    path = Path(path)
    check_folder(path)
    options = _options(model, kwargs)
    named = {name: value for name, value in kwargs.items() if name not in options}
    with _serving(model, args, named) as (served, inputs), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "# The axis name: batch will not be used")  # twice: inputs share this axis
        program = torch.onnx.export(
            served,
            inputs.args,
            kwargs=inputs.kwargs,
            input_names=_checked_names(input_names, inputs.names, served.names),
            output_names=list(served.names),
            dynamic_shapes=inputs.shapes,
            dynamo=True,
            verbose=False,
            **options,
        )
    with written_together(path) as folder:
        program.save(folder / path.name, external_data=options.get("external_data"))  # type: ignore[union-attr]
    return served.names


@contextmanager
def _serving(model: Ensemble, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Iterator[tuple[Served, Inputs]]:
    """The module to export, in evaluation mode, without gradients; afterwards every module is back in its own mode."""
    inputs = Inputs.of(model, args, kwargs)
    with evaluating(model), torch.no_grad():
        yield Served(model, tuple(inputs.kwargs), inputs.constants).eval(), inputs


def _options(model: Ensemble, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Those keywords that are options of torch's exporter, and not inputs of the network."""
    options = {name: kwargs[name] for name in inspect.signature(torch.onnx.export).parameters if name in kwargs}
    if both := [name for name in options if name in model.edge.names]:
        raise ValueError(
            f"{both} are inputs of the network and options of torch.onnx.export, too: give inputs of such names by "
            "position"
        )
    return options


def _checked_names(chosen: Sequence[str] | None, own: Sequence[str], outputs: Sequence[str]) -> list[str]:
    """What the graph calls its inputs; torch itself would leave out some, or write two of a name, without a word."""
    if chosen is not None and len(chosen) != len(own):
        raise ValueError(f"expected input_names for {list(own)}, in this order, got {list(chosen)}")
    names = list(own if chosen is None else chosen)
    if twice := [name for name, count in Counter([*names, *outputs]).items() if count > 1]:
        raise ValueError(
            f"a graph has every name once, and {twice} would be there twice: its inputs are {names}, its outputs "
            f"{list(outputs)}. Name all inputs by input_names"
        )
    return names
