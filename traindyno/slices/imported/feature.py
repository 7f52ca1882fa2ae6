"""Which suite asks for a job that ran, or for a trainer of the SageMaker SDK?"""

from traindyno.lab.feature import Feature


class ImportedFeature(Feature):
    name = "imported"
    client = "imported.client"
