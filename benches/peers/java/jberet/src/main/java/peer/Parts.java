package peer;

import jakarta.batch.api.partition.PartitionMapper;
import jakarta.batch.api.partition.PartitionPlan;
import jakarta.batch.api.partition.PartitionPlanImpl;
import jakarta.enterprise.context.Dependent;
import jakarta.inject.Named;
import java.util.Properties;

@Named
@Dependent
public class Parts implements PartitionMapper {
    @Override
    public PartitionPlan mapPartitions() {
        Properties[] parts = new Properties[PartReader.PARTITIONS];
        for (int part = 0; part < parts.length; part++) {
            parts[part] = new Properties();
            parts[part].setProperty("part", Integer.toString(part));
        }
        PartitionPlanImpl plan = new PartitionPlanImpl();
        plan.setPartitions(parts.length);
        plan.setThreads(2);
        plan.setPartitionProperties(parts);
        return plan;
    }
}
