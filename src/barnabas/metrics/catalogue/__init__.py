"""Every metric, declared once: a module per subject, each a list of constants.

Parts import the constants that they count; `metrics` finds all of them for the reference page.
"""

from barnabas.metrics.metric import Metric


def metrics() -> dict[str, list[Metric]]:
    """Return the metrics of each subject, in the order of their declaration."""
    # A broker does not ask, and need not have these in memory.
    from importlib import import_module
    from pkgutil import iter_modules

    subjects = sorted(module.name for module in iter_modules(__path__))
    return {
        subject: [
            each
            for each in vars(import_module(f"{__name__}.{subject}")).values()
            if isinstance(each, Metric)
        ]
        for subject in subjects
    }
