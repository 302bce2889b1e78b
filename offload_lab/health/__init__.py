"""Targets that a run is held to, monitors while it trains, and drills for what may go wrong."""

from offload_lab.health.alarm import Alarm
from offload_lab.health.figures import Figures
from offload_lab.health.monitor import Monitor
from offload_lab.health.targets import Targets
from offload_lab.health.thresholds import Thresholds

__all__ = ["Alarm", "Figures", "Monitor", "Targets", "Thresholds"]
