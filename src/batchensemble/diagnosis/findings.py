"""What `diagnose` finds, in numbers and in plain words: for classes, and for numbers."""

from collections.abc import Mapping
from dataclasses import dataclass

# Independent networks disagree on as many rows as they get wrong, within a factor of two. Members that disagree on a
# tenth of that, and owe less than a fiftieth of their uncertainty to disagreement, are one network in practice.
COLLAPSED_DISAGREEMENT = 0.1
COLLAPSED_INFORMATION = 0.02
# Averaging lowers the mean member's squared error by the members' variance, exactly; here by less than a hundredth.
LITTLE_SPREAD = 0.1
# Noisy targets have a large error that no member can help. Members are one network if they also differ by less than a
# twentieth of what their answers vary: sound ones on noisy targets differed by a tenth and more, equal ones by nothing.
COLLAPSED_SPREAD = 0.05
ROUNDING = 1e-6  # as a share of the error: answers that differ by less are equal
# Averaging gained an accuracy of 0.075 at most in the 494 classifications of `results/`. Where each member saw only
# some of the classes of digits it gained 0.14 to 0.47; so much is otherwise gained only by members that hardly trained.
FAR_WEAKER = 0.15
SURE = 2.0  # standard errors above zero from which a gain counts

ALONE = "One member is one network: there is nothing to compare."
COLLAPSED = (
    "Collapsed: the members give the same answers, so this ensemble behaves like one network. "
    "Start r and s further apart (init='normal(0.1)' for a pre-trained network, 'sign' or 'normal' from "
    "scratch), train on split rows, and keep weight decay off r and s."
)


@dataclass(frozen=True, repr=False)
class Diagnosis:
    """How far apart the members of an ensemble of classifiers are; prints in plain words.

    Attributes:
        members: number of members.
        rows: number of labels: rows, positions in them, or what a multi-label network says about them.
        similarity: for every converted layer, the mean cosine between members' r, and between their s.
        disagreement: share of pairs of members that answer differently.
        disagreement_over_error: `disagreement` divided by the members' mean error.
        pairwise_kl: mean divergence between two members' answers, in nats.
        mutual_information: what members disagree about, in nats.
        entropy: the ensemble's whole uncertainty, in nats.
        member_accuracy: accuracy of every member.
        accuracy: accuracy of the ensemble.
        member_nll: the members' mean negative log-likelihood.
        nll: the ensemble's negative log-likelihood.
        gain_error: standard error of `gain` over the rows.
        nll_gain: negative log-likelihood of the best member minus that of the ensemble.
        nll_gain_error: standard error of `nll_gain` over the rows.
        collapsed: whether the members behave like one network.
    """

    members: int
    rows: int
    similarity: Mapping[str, Mapping[str, float]]
    disagreement: float
    disagreement_over_error: float
    pairwise_kl: float
    mutual_information: float
    entropy: float
    member_accuracy: tuple[float, ...]
    accuracy: float
    member_nll: float
    nll: float
    gain_error: float
    nll_gain: float
    nll_gain_error: float

    @property
    def gain(self) -> float:
        """Accuracy of the ensemble minus the members' mean accuracy."""
        return self.accuracy - sum(self.member_accuracy) / self.members

    @property
    def collapsed(self) -> bool:
        """Whether the members behave like one network."""
        same_answers = self.disagreement_over_error <= COLLAPSED_DISAGREEMENT
        return same_answers and self.mutual_information <= COLLAPSED_INFORMATION * self.entropy

    @property
    def verdict(self) -> str:
        """The diagnosis in words."""
        if self.members == 1:
            return ALONE
        if self.collapsed:
            return COLLAPSED
        gains = {"accuracy": (self.gain, self.gain_error), "likelihood": (self.nll_gain, self.nll_gain_error)}
        found = [name for name, (gain, error) in gains.items() if gain > SURE * error]
        if self.gain > max(FAR_WEAKER, SURE * self.gain_error):
            return (
                f"The members are far weaker than their ensemble ({self.accuracy - self.gain:.0%} of these rows right, "
                f"on average, instead of {self.accuracy:.0%}). Each may have seen only some of the classes: a split "
                "batch gives each member a block of rows, so shuffle rows that are sorted by class. If they were "
                "shuffled, each has seen too few: train longer, or with fewer members."
            )
        differ = f"The members {'differ' if self.disagreement else 'give different probabilities, the same labels'}"
        loses = self.nll_gain < -SURE * self.nll_gain_error
        end = "; the best member alone has the higher likelihood." if loses else "."
        if not found:
            return f"{differ}, but averaging them gains nothing beyond the noise of these rows{end}"
        return f"An ensemble: {differ[0].lower()}{differ[1:]}, and averaging them gains {' and '.join(found)}{end}"

    def __repr__(self) -> str:
        mean = sum(self.member_accuracy) / self.members
        return "\n".join(
            [
                self.verdict,
                f"  {self.members} members on {self.rows} rows",
                f"  accuracy            {self.accuracy:.2%} (members {mean:.2%}, "
                f"gain {self.gain:+.2%} ± {self.gain_error:.2%})",
                f"  log-likelihood      {-self.nll:.4f} (members {-self.member_nll:.4f}, "
                f"gain over the best {self.nll_gain:+.4f} ± {self.nll_gain_error:.4f})",
                f"  disagreement        {self.disagreement:.2%}, {self.disagreement_over_error:.2f} of the error",
                f"  pairwise KL         {self.pairwise_kl:.4f} nats",
                f"  mutual information  {self.mutual_information:.4f} of {self.entropy:.4f} nats",
                f"  most alike layers   {_most_alike(self.similarity)}",
            ]
        )


@dataclass(frozen=True, repr=False)
class RegressionDiagnosis:
    """How far apart the members of an ensemble that predicts numbers are; prints in plain words.

    Attributes:
        members: number of members.
        rows: number of rows with targets.
        similarity: for every converted layer, the mean cosine between members' r, and between their s.
        spread: the members' standard deviation around their mean, as root mean square over the rows.
        variation: the standard deviation over the rows of the members' mean, as root mean square over what they answer.
        member_rmse: root mean squared error of every member.
        rmse: root mean squared error of the members' mean.
        mse_gain: squared error of the best member minus that of the mean.
        mse_gain_error: standard error of `mse_gain` over the rows.
        collapsed: whether the members behave like one network.
    """

    members: int
    rows: int
    similarity: Mapping[str, Mapping[str, float]]
    spread: float
    variation: float
    member_rmse: tuple[float, ...]
    rmse: float
    mse_gain: float
    mse_gain_error: float

    @property
    def spread_over_error(self) -> float:
        """`spread` divided by the members' root mean squared error.

        Its square is the share of their squared error that averaging removes, since
        `mean_i (f_i - y)^2 = (mean_i f_i - y)^2 + spread^2`.
        """
        error = self._mean_error
        return self.spread / error if error else 0.0

    @property
    def _mean_error(self) -> float:
        return float((sum(error**2 for error in self.member_rmse) / self.members) ** 0.5)

    @property
    def collapsed(self) -> bool:
        """Whether the members behave like one network."""
        differ = self.spread > max(COLLAPSED_SPREAD * self.variation, ROUNDING * self._mean_error)
        return self._differs_little and not differ

    @property
    def _differs_little(self) -> bool:
        return self.spread_over_error <= LITTLE_SPREAD

    @property
    def verdict(self) -> str:
        """The diagnosis in words."""
        if self.members == 1:
            return ALONE
        if self.collapsed:
            return COLLAPSED
        if self._differs_little:
            return (
                f"The members differ (spread {self.spread:.2g}), but little beside the error ({self._mean_error:.2g}): "
                "averaging cannot gain much. If the targets are noisy, this is expected."
            )
        if self.mse_gain > SURE * self.mse_gain_error:
            return "An ensemble: the members differ, and their mean has a smaller error than the best of them."
        if self.mse_gain < -SURE * self.mse_gain_error:
            return "The members differ, but the best of them alone has a smaller error than their mean."
        return "The members differ, but their mean is no better than the best of them, beyond the noise of these rows."

    def __repr__(self) -> str:
        best = min(self.member_rmse)
        return "\n".join(
            [
                self.verdict,
                f"  {self.members} members on {self.rows} rows",
                f"  error (RMSE)        {self.rmse:.4g} (members {self._mean_error:.4g}, best {best:.4g})",
                f"  squared error       gain over the best {self.mse_gain:+.4g} ± {self.mse_gain_error:.2g}",
                f"  spread              {self.spread:.4g}, {self.spread_over_error:.2f} of the members' error; "
                f"their mean varies by {self.variation:.4g} over the rows",
                f"  most alike layers   {_most_alike(self.similarity)}",
            ]
        )


def _most_alike(similarity: Mapping[str, Mapping[str, float]]) -> str:
    most = sorted(similarity.items(), key=lambda item: -min(item[1].values()))[:3]
    return ", ".join(f"{name or '(root)'} ({min(sides.values()):+.2f})" for name, sides in most)
