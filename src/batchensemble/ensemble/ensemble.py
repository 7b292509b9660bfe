"""An ensemble around any network: rows are split, routed or repeated, and members' answers combined."""

import copy
import inspect
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn

from batchensemble import files
from batchensemble.ensemble.answers import Answers, Field
from batchensemble.ensemble.axis import Edge, Given
from batchensemble.ensemble.compiling import bound_copy, compile_arguments
from batchensemble.ensemble.places import Batch, Finder, no_rows_message, unfold
from batchensemble.ensemble.precision import explain_types
from batchensemble.ensemble.settings import Settings
from batchensemble.ensemble.signature import forward_with, with_member
from batchensemble.ensemble.stand_in import StandIn
from batchensemble.ensemble.watch import Watch
from batchensemble.nn.conversion.changed import refuse_changed, why_it_fails
from batchensemble.nn.conversion.convert import Conversion, restore_
from batchensemble.nn.copies import shallow_copy_as, sharing_copy
from batchensemble.nn.init import check_generator
from batchensemble.nn.integers import check_count
from batchensemble.nn.layers.bags import explain_bags
from batchensemble.nn.layers.converted import Pick
from batchensemble.nn.layers.member import converted_layers, member_modules, own_tensors
from batchensemble.nn.mode import evaluating
from batchensemble.nn.routing import fan_out as fans
from batchensemble.nn.routing.ids import checked_member, checked_owner
from batchensemble.nn.routing.route import Route, current, travel
from batchensemble.nn.trees import constants, tensors
from batchensemble.prediction import Prediction, combine_outputs

_BOUND = ("forward", "_side_by_side", "_compiled_call_impl", "_compiled_with")  # bound to one object, so never copied


class Ensemble(StandIn):
    """Members that share one network. Made by `convert`, or read by `load`.

    In training `model(x)` splits the rows over the members; in evaluation all members answer every row, and their
    answers are combined. `member=` names one member for all rows, or one for each.

    Attributes:
        net: the network with its layers converted.
        settings: the arguments of `convert`.
        conversion: which layers were converted, and why others were not.
        edge: how its inputs and outputs carry rows.
    """

    def __init__(self, net: nn.Module, settings: Settings, conversion: Conversion) -> None:
        super().__init__(net)
        self.settings, self.conversion = settings, conversion
        if settings.fan_out is not None:
            fans.install_(net, settings.fan_out)
        self.training = net.training  # not train(): a layer that was frozen in eval stays so
        self._count = member_modules(net)[0][1].members
        self._watch, self._finder = Watch(), Finder()
        self._adopt_signature()

    def _adopt_signature(self) -> None:
        """Give `forward` the network's own signature, plus `member`, and remember which inputs carry rows."""
        signature = inspect.signature(self.net.forward)
        self.edge = Edge.of(signature, self.settings.batch_dim, self.settings.shared_inputs)
        self.__dict__["forward"] = forward_with(with_member(signature), self)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in _BOUND}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        self._adopt_signature()

    def _replicate_for_data_parallel(self) -> Self:
        """Bind anew what is bound to one object: DataParallel copies all attributes to its replicas."""
        replica: Self = super()._replicate_for_data_parallel()  # type: ignore[no-untyped-call]
        replica.__dict__ = replica.__getstate__()
        replica._adopt_signature()
        return replica

    def train(self, mode: bool = True) -> Self:
        """As `torch.nn.Module.train`."""
        if mode:
            self._watch.forget()
        return super().train(mode)

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        self._watch.forget()
        self._watch.begin_anew()
        super()._load_from_state_dict(*args, **kwargs)

    def __len__(self) -> int:
        return self._count

    def extra_repr(self) -> str:
        """What print shows."""
        return f"members={len(self)}, combine={self.settings.combine!r}, answer in eval(): {self.settings.answer}"

    def __repr__(self) -> str:
        return f"Ensemble of {super().__repr__()}"

    # ---- answering -----------------------------------------------------------------------------------------------

    def forward(self, *args: Any, member: int | Tensor | None = None, **kwargs: Any) -> Any:
        """Answer a batch: rows are split over the members in training, all members are combined in evaluation.

        Args:
            *args: the network's inputs, `(N, ...)` on axis `batch_dim`.
            member: who answers instead, in either mode: one member for all rows, or ids `(N,)`, one for each.
            **kwargs: the network's keyword inputs.

        Returns:
            What the network returns, its answer as `(N, ...)`. When members are combined, that is log-probabilities
            `(N, ..., classes)` for "softmax", and other tensors of a structured output come as `(members, N, ...)`.

        Examples:
            >>> import batchensemble as be
            >>> model, x = be.convert(nn.Linear(4, 3), members=2), torch.randn(5, 4)
            >>> model(x).shape, model.eval()(x).exp().sum(-1).allclose(torch.ones(5))
            (torch.Size([5, 3]), True)
            >>> one, mixed = model(x, member=1), model(x, member=torch.tensor([0, 1, 1, 0, 1]))
            >>> torch.allclose(mixed[1], one[1])
            True
        """
        if member is None and self.settings.combine is None:
            raise ValueError("combine=None: members have nothing in common; name one, or one per row, with member=")
        if member is None and not self.training:
            return self._combined(self.answers(*args, **kwargs))
        self._watch.forget()
        if self.training:
            self._watch.warn_of_stale_optimizer(self.net, stacklevel=5)
        first = self.edge.first(args, kwargs)
        rows, device = first.shape[self.edge.axis], first.device
        owner = self._dealt(rows, device) if member is None else checked_owner(member, rows, len(self), device)
        return travel(self._route(rows, owner), self._run, args, kwargs)

    def members(self, *args: Any, **kwargs: Any) -> Any:
        """Let every member answer every row: each tensor of the output with a first axis of members; differentiable.

        Examples:
            >>> import batchensemble as be
            >>> be.convert(nn.Linear(4, 3), members=2).members(torch.randn(5, 4)).shape
            torch.Size([2, 5, 3])
        """
        self._watch.forget()
        if self.training:
            self._watch.warn_of_stale_optimizer(self.net, stacklevel=2)
        return self.answers(*args, **kwargs).output

    def answers(self, *args: Any, **kwargs: Any) -> Answers:
        """What `members` returns, and where in it the answer and its rows are."""
        return self._answers(self.edge.given(args, kwargs))

    def _answers(self, given: Given) -> Answers:
        output, axis = self._side_by_side(given)
        return Answers(output, Field.find(output, self.settings.output), axis, self.settings.class_dim)

    def _side_by_side(self, given: Given) -> tuple[Any, int]:
        """What `members` returns, and the axis of the rows in one member's answer; `compile` compiles this."""
        if "member" in given.kwargs:
            raise TypeError("members and predict ask all members; for one, or for one per row: model(x, member=...)")
        rows = self.edge.rows(given.args, given.kwargs)
        # A single row would broadcast unnoticed where a late fan-out cuts a residual connection, so it travels as two.
        late = self.settings.fan_out is not None
        copies = 2 if late and rows == 1 else 1
        given = self.edge.repeat(given, copies)
        before = self.edge.before_rows(given.args, given.kwargs)
        batch = Batch(self.settings.batch_dim, len(self), rows * copies, late, before)
        output = self._repeated(given, batch, copies)
        answer = Field.find(output, self.settings.output).get(output)
        places = self._finder.find(output, answer, batch, lambda: (self.training, constants(given[:2])))
        place = next(place for tensor, place in zip(tensors(output), places, strict=True) if tensor is answer)
        if place is None or place.common:
            raise ValueError(no_rows_message(answer, rows, len(self)))
        return unfold(output, places, len(self), copies), place.axis

    def _repeated(self, given: Given, batch: Batch, already: int) -> Any:
        """What the network returns for the batch, of which there may be copies already, repeated for every member."""
        args, kwargs, _ = self.edge.repeat(given, batch.members, batch.late)
        late, here = (batch.members, 1) if batch.late else (1, batch.members)
        route = self._route(batch.rows * here, None, copies=late, before=batch.before, repeated=here * already)
        return travel(route, self._run, args, kwargs, batch)

    def predict(self, *args: Any, batch_size: int | None = None, **kwargs: Any) -> Prediction:
        """All members' answers and their uncertainty, without gradients, in evaluation mode.

        Args:
            *args: the network's inputs.
            batch_size: rows per pass; all at once by default. Inputs are cut on axis `batch_dim`; one that seems to
                hold rows on another axis (a recurrent state, a mask per head) is refused.
            **kwargs: the network's keyword inputs.

        Examples:
            >>> import batchensemble as be
            >>> prediction = be.convert(nn.Linear(4, 3), members=2).predict(torch.randn(5, 4), batch_size=2)
            >>> prediction.probs.shape, prediction.mutual_information.shape
            (torch.Size([5, 3]), torch.Size([5]))
        """
        given = self.edge.given(args, kwargs)
        size = None if batch_size is None else check_count("batch_size", batch_size)
        parts = [given] if size is None else self.edge.parts(given, size, len(self))
        with evaluating(self), torch.no_grad():
            return Prediction.cat(self._part(part, len(parts) > 1) for part in parts)

    def _part(self, given: Given, of_several: bool) -> Prediction:
        """The prediction for all rows, or for one of several parts of them."""
        answers, axis = self._answers(given), self.settings.batch_dim
        if of_several and answers.axis != axis:  # a part may have as many rows as there are classes
            raise ValueError(
                f"batch_size joins parts on axis {axis}, and the network's answer has its rows on axis {answers.axis}: "
                "call predict without batch_size on batches of your own"
            )
        prediction = answers.prediction(self.settings.combine)
        is_compiled = "_side_by_side" in self.__dict__  # a CUDA graph overwrites its last answers
        return replace(prediction, outputs=prediction.outputs.clone()) if is_compiled else prediction

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile calls, `members` and `predict`, as `torch.nn.Module.compile` does, with options that suit members.

        `mode="reduce-overhead"` also replays them as CUDA graphs, one for every shape.
        """
        super().compile(*args, **compile_arguments(**kwargs))  # made twice, since torch pops from it
        whole = bound_copy(type(self)._side_by_side, self)
        self.__dict__["_side_by_side"] = torch.compile(whole, *args, **compile_arguments(**kwargs))
        self.__dict__["_compiled_with"] = args, kwargs

    def _set_count(self, count: int) -> Self:
        """Set the number of members, and compile a compiled ensemble again, with its full budget of recompilations."""
        self._count = count
        self._watch.begin_anew()
        if again := self.__dict__.get("_compiled_with"):
            self._adopt_signature()
            self.compile(*again[0], **again[1])
        return self

    def _combined(self, answers: Answers) -> Any:
        """The network's output with one answer of all members; its other tensors keep their member axis."""
        answer = combine_outputs(answers.rows_first, self.settings.combine, answers.class_axis)
        if len(self) > 1:
            self._watch.warn_of_evaluation(answer, self.net)
        return answers.put(answer)

    def _dealt(self, rows: int, device: torch.device) -> Tensor | None:
        """Every row's member in training, `n * members // N` for row n of N; `None` if these are equal blocks."""
        members = len(self)
        self._watch.warn_of_few_rows(rows, members)
        if rows % members == 0:
            return None
        return torch.arange(rows, device=device) * members // rows

    def _route(self, rows: int, owner: int | Tensor | None, **more: Any) -> Route:
        return Route(len(self), rows, owner, self.settings.batch_dim, self.settings.fan_out, **more)

    def _run(self, args: Sequence[Any], kwargs: Any, batch: Batch | None = None) -> Any:
        """Call the network under the current route, and explain its errors where their cause is known."""
        try:
            output = self.net(*args, **kwargs)
        except (RuntimeError, ValueError) as error:
            if isinstance(error, torch.OutOfMemoryError) or torch.compiler.is_compiling():  # no explanations in a graph
                raise
            if reason := why_it_fails(self.net, error, self.conversion.converted):
                raise RuntimeError(reason) from error
            cut = fans.what_the_cut_changes(self.settings.fan_out or "", kwargs)
            types = explain_types(self.net, error, (args, kwargs))
            bags = explain_bags(self.net, error, repeated=batch is not None and batch.repeated)
            if note := types or cut or bags or (batch.explain(error) if batch is not None else ""):
                error.add_note(note)
            raise
        route = current()
        if route is not None and route.fan_out is not None:
            raise RuntimeError(
                f"the network never called fan_out={route.fan_out!r}, where its rows were to become all members': "
                "name a module that its forward calls on the way to the answer"
            )
        return output

    # ---- members come and go -------------------------------------------------------------------------------------

    def extract(self, member: int) -> nn.Module:
        """Member i as a plain network: the original class and keys, `W ∘ s_i r_iᵀ` folded in.

        Examples:
            >>> import batchensemble as be
            >>> be.convert(nn.Linear(4, 3), members=2).extract(1)
            Linear(in_features=4, out_features=3, bias=True)
        """
        return self._restored(checked_member(member, len(self)))

    def extract_mean(self) -> nn.Module:
        """The plain network with the mean weight, `W ∘ mean_i(s_i r_iᵀ)`; biases and norms are means, too."""
        return self._restored(None)

    def _restored(self, pick: Pick) -> nn.Module:
        refuse_changed(self.net)
        net = copy.deepcopy(self.net)
        fans.remove_(net)
        return restore_(net, pick)

    def add_members(self, count: int, like: int | None = None, generator: torch.Generator | None = None) -> Self:
        """Add `count` members; the existing ones answer as before. Rebuild optimisers afterwards.

        Every member's own parameters are new objects, which an older optimiser does not know.

        Args:
            count: how many.
            like: copy this member; by default r and s start as in `convert`, biases and norms at the members' mean.
            generator: source of random fast weights.

        Examples:
            >>> import batchensemble as be
            >>> len(be.convert(nn.Linear(4, 3), members=2).add_members(3).keep_members([0, 4]))
            2
        """
        count = check_count("count", count)
        like = None if like is None else checked_member(like, len(self))
        check_generator(generator)
        refuse_changed(self.net)
        for _, module in member_modules(self.net):
            module.grow_(count, like, generator)
        return self._set_count(len(self) + count)

    def keep_members(self, indices: Sequence[int]) -> Self:
        """Keep only these members, in this order. Rebuild optimisers afterwards, as for `add_members`."""
        indices = [checked_member(index, len(self)) for index in indices]
        if not indices:
            raise ValueError("an ensemble needs at least one member to keep")
        refuse_changed(self.net)
        for _, module in member_modules(self.net):
            module.keep_(indices)
        return self._set_count(len(indices))

    # ---- files ---------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the whole ensemble to one safetensors file; read it back with `batchensemble.load`.

        A link at `path` is replaced, as safetensors does it; the file that it points to stays as it was.
        """
        refuse_changed(self.net)
        settings = asdict(self.settings)
        if callable(self.settings.combine):
            settings["combine"] = {"callable": getattr(self.settings.combine, "__name__", "a rule")}
        header = {"members": len(self), "settings": settings, "converted": list(converted_layers(self.net))}
        files.write(path, "ensemble", files.distinct_state(self.net), header)

    def save_member(self, member: int, path: str | Path) -> None:
        """Write one member's own tensors, and fingerprints of everything that it shares with the others.

        Buffers that torch does not save (`persistent=False`) have none: make the network that loads it with the same.
        """
        member = checked_member(member, len(self))
        refuse_changed(self.net)
        tensors = {name: tensor[member] for name, tensor in own_tensors(self.net).items()}
        files.write(path, "member", tensors, {"fingerprints": files.fingerprints(self.net)})

    @torch.no_grad()
    def load_member(self, path: str | Path) -> int:
        """Add the member in a file and return its index; a file saved with other shared weights is refused."""
        tensors, header = files.read(path, "member")
        files.check_shared(path, header["fingerprints"], files.fingerprints(self.net))
        files.check_fit(path, tensors, {name: tensor[0] for name, tensor in own_tensors(self.net).items()})
        self.add_members(1, like=0)
        for name, tensor in own_tensors(self.net).items():
            tensor[-1].copy_(tensors[name])
        return len(self) - 1


def twin_of(model: Ensemble) -> Ensemble:
    """A copy of an ensemble that shares its tensors, and what it has learned about where outputs hold their rows."""
    twin = shallow_copy_as(type(model), model, without=_BOUND)
    twin._modules["net"] = sharing_copy(model.net)
    twin._adopt_signature()
    return twin


def check_ensemble(model: object) -> None:
    """Raise a `TypeError` unless `model` is an ensemble, or what `torch.compile` made of one."""
    if not isinstance(getattr(model, "_orig_mod", model), Ensemble):
        held = "; its .module is one" if isinstance(getattr(model, "module", None), Ensemble) else ""
        raise TypeError(f"expected an ensemble, as convert makes them, got {type(model).__name__}{held}")
