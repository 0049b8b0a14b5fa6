"""Findings of an inspection that no forecast has."""
