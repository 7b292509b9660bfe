"""What a figure has drawn, for looking at its data."""

from batchensemble.lab.report import Figure


def canvas_of(figure: Figure):
    """What matplotlib has on the figure, for looking at its data."""
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=figure.size)
    figure.draw(canvas)
    return canvas
