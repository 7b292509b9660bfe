"""Turns recipes into trained networks; each is trained once and found again by whoever asks for the same one."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from torch import nn

from batchensemble.lab.data import ImageSet
from batchensemble.lab.methods.ensembles import Network, SeededMethod, Single
from batchensemble.lab.models import ResNet, resnet
from batchensemble.lab.studies.classification.recipe import Recipe
from batchensemble.lab.studies.images import ImageBatches, View, load_images
from batchensemble.lab.studies.parts import TrainedPart, train_part
from batchensemble.lab.studies.study import Context
from batchensemble.lab.training.devices import on_device
from batchensemble.lab.training.fit import TrainingJob
from batchensemble.lab.training.optimizers import sgd
from batchensemble.lab.training.schedules import SCHEDULES
from batchensemble.lab.training.synchronise import average_buffers_, synchronised_

if TYPE_CHECKING:
    from lightning_fabric import Fabric


@dataclass(frozen=True, eq=False)
class Trainer:
    """Trains recipes on one set of images.

    Args:
        fabric: device, precision and processes.
        context: where to work.
        train: the images, on the device.
        view: turns them into network inputs.
    """

    fabric: "Fabric"
    context: Context
    train: ImageSet
    view: View

    def parts(self, recipe: Recipe, seed: int) -> list[TrainedPart]:
        """All trained parts of the recipe's method; a naive ensemble reuses the single networks of others."""
        return [self.part(recipe, part) for part in recipe.method.parts(seed)]

    def part(self, recipe: Recipe, part: SeededMethod) -> TrainedPart:
        """One part, trained in its own folder."""
        return train_part(recipe, part, partial(self._training, recipe, part), self.fabric, self.context)

    def _training(self, recipe: Recipe, part: SeededMethod) -> TrainingJob:
        method, fabric = part.method, self.fabric
        model = self._model(recipe, part)
        apart = fabric.world_size > 1 and recipe.own_members  # each process has norms of its own
        return TrainingJob(
            model,
            loss=partial(method.loss, weight_decay=recipe.weight_decay),
            batches=self._batches(recipe, part),
            optimizer=sgd(method.groups(model, recipe.lr, recipe.weight_decay), fabric.device),
            schedule=SCHEDULES[recipe.schedule],
            epochs=recipe.epochs,
            seed=part.seed,
            after_epoch=partial(_share_statistics, model) if apart else None,
        )

    def _model(self, recipe: Recipe, part: SeededMethod) -> nn.Module:
        """Build the untrained model on its device."""
        classes, channels = self.train.classes, self.train.images.shape[1]
        network: Network = partial(resnet, recipe.depth, recipe.width, classes, channels=channels)
        if recipe.start is not None:
            network = self._begun(network, recipe.start)
        model = part.method.build(network, part.seed)
        if self.fabric.world_size > 1 and not recipe.own_members:
            model = synchronised_(model, self.fabric.device)
        return on_device(model, self.fabric.device)

    def _begun(self, network: Network, start: Recipe) -> Network:
        """Make networks start from the backbone of a network trained first."""
        images, _ = load_images(start.data, self.context.data)
        trained = trainer_of(start, images, self.fabric, self.context).part(start, SeededMethod(Single(), 0))
        backbone = cast(ResNet, trained.model).backbone.state_dict()

        def begun(**options: Any) -> nn.Module:
            net = cast(ResNet, network(**options))
            net.backbone.load_state_dict(backbone)
            return net

        return begun

    def _batches(self, recipe: Recipe, part: SeededMethod) -> ImageBatches:
        fabric = self.fabric
        streams = part.method.streams(part.seed)
        shared = (fabric.global_rank, fabric.world_size, recipe.own_members)
        return ImageBatches(self.train, self.view, streams, recipe.batch, *shared)


def trainer_of(recipe: Recipe, images: ImageSet, fabric: "Fabric", context: Context) -> Trainer:
    """A trainer on the recipe's share of the images, normalised by the statistics of all of them."""
    train = images if recipe.share == 1 else images.subset(recipe.share)
    view = View.of(images, recipe.pad).to(fabric.device)  # moved once: a copy from the CPU would make every step wait
    return Trainer(fabric, context, train.to(fabric.device), view)


def _share_statistics(model: nn.Module, epoch: int) -> Mapping[str, float]:
    average_buffers_(model)
    return {}
