package peer;

import jakarta.batch.api.BatchProperty;
import jakarta.batch.api.chunk.AbstractItemReader;
import jakarta.enterprise.context.Dependent;
import jakarta.inject.Inject;
import jakarta.inject.Named;
import java.io.Serializable;

/** The items of a partition. */
@Named
@Dependent
public class PartReader extends AbstractItemReader {
    static final int PARTITIONS = 1000;
    static final int ITEMS = 10;

    @Inject
    @BatchProperty
    private long part;

    private int read;

    @Override
    public void open(Serializable checkpoint) {
        read = checkpoint == null ? 0 : (Integer) checkpoint;
    }

    @Override
    public Object readItem() {
        return read == ITEMS ? null : Person.number(part * ITEMS + read++);
    }

    @Override
    public Serializable checkpointInfo() {
        return read;
    }
}
