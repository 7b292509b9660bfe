"""Progressive networks (Rusu et al., 2016): a column per task, with connections from all earlier columns."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from batchensemble.lab.methods.lifelong.lesson import Lesson
from batchensemble.lab.methods.lifelong.method import Network, Student
from batchensemble.lab.methods.lifelong.trunk import Trunk
from batchensemble.seeds import seeded

SCALE = 0.1  # initial scale of what a column receives from the others


@dataclass(frozen=True)
class PNN:
    """Columns with lateral connections: block l of column k gets `h_k + U relu(V a [h_1, ..., h_(k-1)])`.

    V and U are 1x1 convolutions (dense layers where rows are flat); V reduces the earlier columns to the width of one,
    as in the paper. There the connection enters before a layer's rectifier; here it enters a block, which may have
    several layers. Columns that were learned are frozen, their norms in evaluation mode.
    """

    def begin(self, network: Network, seed: int, folder: Path | None = None) -> "Columns":
        """Start without any column."""
        return Columns(network, seed)


class Adapter(nn.Module):
    """Computes what earlier columns add to a block's input of `width` channels."""

    def __init__(self, columns: int, width: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(SCALE))
        self.down = nn.Linear(columns * width, width)
        self.up = nn.Linear(width, width)

    def forward(self, earlier: Sequence[Tensor]) -> Tensor:
        """Turn the maps `(N, width, ...)` of all earlier columns into what is added."""
        seen = self.scale * torch.cat(list(earlier), 1).movedim(1, -1)
        added: Tensor = self.up(torch.relu(self.down(seen)))
        return added.movedim(-1, 1)


class Column(nn.Module):
    """A network with adapters before all blocks but the first, and a head."""

    def __init__(self, trunk: Trunk, head: nn.Linear, earlier: int) -> None:
        super().__init__()
        self.trunk, self.head = trunk, head
        widths = trunk.widths[:-1] if earlier else ()
        self.adapters = nn.ModuleList(Adapter(earlier, width) for width in widths)

    def block(self, level: int, x: Tensor, earlier: Sequence[Tensor]) -> Tensor:
        """The block's output for its own input and those of earlier columns."""
        if level and earlier:
            x = x + self.adapters[level - 1](earlier)
        output: Tensor = self.trunk.blocks[level](x)
        return output


class Columns(Student):
    """A column per task."""

    def __init__(self, network: Network, seed: int) -> None:
        super().__init__()
        self.network, self.seed = network, seed
        self.columns = nn.ModuleList()

    def learn(self, lesson: Lesson) -> None:
        """Train a new column; the earlier ones run but are not trained."""
        column = self._column(lesson)
        self.columns.append(column)
        column.train()
        lesson.train(column, lambda x: self._answer(x, lesson.number), column)
        column.eval().requires_grad_(False)

    def _column(self, lesson: Lesson) -> Column:
        seed = lesson.seed_in(self.seed)
        trunk = self.network(torch.Generator().manual_seed(seed))
        with seeded(seed):
            column = Column(trunk, lesson.new_head(trunk.features, self.seed, trunk), len(self.columns))
        return column.to(next(trunk.parameters()).device)

    def _answer(self, images: Tensor, task: int) -> Tensor:
        """Run all columns up to the task's, level by level, and return its logits."""
        columns: list[Column] = list(self.columns[: task + 1])  # type: ignore[arg-type]
        hidden = [images] * len(columns)
        for level in range(len(columns[0].trunk.blocks)):
            with torch.no_grad():
                earlier = [c.block(level, hidden[j], hidden[:j]) for j, c in enumerate(columns[:-1])]
            hidden = [*earlier, columns[-1].block(level, hidden[-1], hidden[:-1])]
        answers: Tensor = columns[-1].head(hidden[-1])
        return answers

    @torch.no_grad()
    def logits(self, images: Tensor, task: int) -> Tensor:
        """The logits of the task's column."""
        return self._answer(images, task)
