"""Training: one `fit` for classifiers and translators; lifelong learners and bandits have loops of their own."""
