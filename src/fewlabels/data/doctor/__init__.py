"""What is in a file, what is wrong with it, and how to mend it."""

from fewlabels.data.doctor.diagnose import diagnose
from fewlabels.data.doctor.facts import Diagnosis, Finding

__all__ = ["Diagnosis", "Finding", "diagnose"]
